"""The keys and certificates of a local cluster.

One authority a cluster. Client certificates are for what must work before there are tokens: the
bootstrap identity, the controllers, and the API server when it asks a node for a log.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster_local.ports import LOOPBACK

_VALID: Final = datetime.timedelta(days=3650)
_SERVICE_ADDRESS: Final = "10.96.0.1"
"""First address of the service range: the API server as pods of a usual cluster would see it."""
_API_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Client:
    """An identity that the API server knows by certificate."""

    file: str
    user: str
    groups: tuple[str, ...] = ()


BOOTSTRAP: Final = Client("bootstrap", "muster-bootstrap", ("system:masters",))
CONTROLLERS: Final = Client("controller-manager", "system:kube-controller-manager")
SCHEDULER: Final = Client("scheduler", "system:kube-scheduler")
NODES: Final = Client("nodes", "muster-local-nodes")
KWOK: Final = Client("kwok", "muster-local-kwok")
API_SERVER_TO_NODES: Final = Client(
    "apiserver-kubelet-client", "kube-apiserver-kubelet-client", ("system:masters",)
)
CLIENTS: Final = (BOOTSTRAP, CONTROLLERS, SCHEDULER, NODES, KWOK, API_SERVER_TO_NODES)


def ensure_certificates(directory: Path) -> None:
    """Fill *directory*, readable for its owner only, unless it is complete already.

    `ca`, `apiserver` (serving), `kubelet` (serving, for the nodes), one pair for each client, and
    `service-account.key` and `.pub` for tokens.
    """
    if (directory / "complete").exists():
        return
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = _Authority(directory)
    addresses = (LOOPBACK, "::1", _SERVICE_ADDRESS)
    authority.serve("apiserver", names=_API_NAMES, addresses=addresses)
    authority.serve("kubelet", names=("localhost",), addresses=(LOOPBACK, "::1"))
    for client in CLIENTS:
        authority.identify(client)
    # RSA: clients that verify service account tokens outside of Kubernetes know RS256 best.
    signing = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write_key(directory / "service-account.key", signing)
    (directory / "service-account.pub").write_bytes(
        signing.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    (directory / "complete").touch()


class _Authority:
    """Signs certificates and writes them as `NAME.crt` and `NAME.key`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("muster-local-ca")
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        usage = _key_usage(is_authority=True)
        certificate = (
            _unsigned(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._write("ca", certificate, self._key)

    def serve(self, file: str, *, names: Sequence[str], addresses: Sequence[str]) -> None:
        """A certificate under which a server answers at *names* and *addresses*."""
        alternatives = x509.SubjectAlternativeName(
            [
                *(x509.DNSName(name) for name in names),
                *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
            ]
        )
        self._issue(file, _name(file), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def identify(self, client: Client) -> None:
        """A certificate by which the API server knows *client*."""
        name = _name(client.user, client.groups)
        self._issue(client.file, name, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        file: str,
        name: x509.Name,
        purpose: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = (
            _unsigned(name, self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(identifier, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier),
                critical=False,
            )
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        self._write(file, builder.sign(self._key, hashes.SHA256()), key)

    def _write(
        self, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> None:
        _write_key(self._directory / f"{file}.key", key)
        path = self._directory / f"{file}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # Clocks that are set back a little must not make a new cluster unusable.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALID)
    )


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
