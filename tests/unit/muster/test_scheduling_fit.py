"""Which nodes a pod may run on: Kubernetes' rules for what the direct path supports."""

import pytest

from muster.scheduling.fit import Columns, Misfit, misfit, satisfies, tolerates
from muster.scheduling.snapshot import Node, NodeRules, Requirement, Taint, Toleration

REQUIREMENTS = {
    "In takes one of its values": (("In", "a", "b"), "b", True),
    "In takes no other": (("In", "a", "b"), "c", False),
    "In needs the label": (("In", "a"), None, False),
    "NotIn refuses its values": (("NotIn", "a"), "a", False),
    "NotIn takes others": (("NotIn", "a"), "b", True),
    "NotIn takes a node without the label": (("NotIn", "a"), None, True),
    "Exists takes any value": (("Exists",), "", True),
    "Exists needs the label": (("Exists",), None, False),
    "DoesNotExist takes a node without the label": (("DoesNotExist",), None, True),
    "DoesNotExist refuses any value": (("DoesNotExist",), "", False),
    "Gt compares as numbers": (("Gt", "9"), "10", True),
    "Gt is strict": (("Gt", "9"), "9", False),
    "Lt compares as numbers": (("Lt", "10"), "9", True),
    "Lt is strict": (("Lt", "-9"), "-9", False),
    "Gt takes no word": (("Gt", "9"), "many", False),
    "Gt takes no bound that is a word": (("Gt", "many"), "9", False),
    "Gt needs the label": (("Gt", "9"), None, False),
    "Gt takes one bound": (("Gt", "1", "2"), "9", False),
    "what is unknown matches nothing": (("Near", "a"), "a", False),
}


@pytest.mark.parametrize(("given", "value", "want"), REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_requirement(given, value, want):
    operator, *values = given
    assert want == satisfies(Requirement("key", operator, tuple(values)), value)


TAINT = Taint("dedicated", "ml", "NoSchedule")
TOLERATIONS = {
    "the same key, value and effect": (Toleration("dedicated", "Equal", "ml", "NoSchedule"), True),
    "an empty operator means Equal": (Toleration("dedicated", "", "ml", "NoSchedule"), True),
    "another value": (Toleration("dedicated", "Equal", "web", "NoSchedule"), False),
    "Exists ignores the value": (Toleration("dedicated", "Exists"), True),
    "an empty effect means every effect": (Toleration("dedicated", "Equal", "ml"), True),
    "another effect": (Toleration("dedicated", "Equal", "ml", "NoExecute"), False),
    "an empty key with Exists tolerates everything": (Toleration("", "Exists"), True),
    "an empty key with Equal tolerates nothing": (Toleration("", "Equal", "ml"), False),
    "another key": (Toleration("zone", "Exists"), False),
    "an unknown operator": (Toleration("dedicated", "Near", "ml"), False),
}


@pytest.mark.parametrize(("toleration", "want"), TOLERATIONS.values(), ids=TOLERATIONS)
def test_toleration(toleration, want):
    assert want == tolerates((toleration,), TAINT)


NODE = Node(
    "n1",
    8,
    labels={"rack": "r1", "cores": "96"},
    gpu_model="H100",
    capacity_type="spot",
    taints=(TAINT, Taint("soft", "", "PreferNoSchedule")),
)
ANY = (Toleration("", "Exists"),)
IN_R1 = Requirement("rack", "In", ("r1",))
IN_R2 = Requirement("rack", "In", ("r2",))

RULES = {
    "no rules but a taint": (NodeRules(), Misfit.TAINT),
    "the taint is tolerated": (NodeRules(tolerations=ANY), None),
    "a soft taint does not count": (
        NodeRules(tolerations=(Toleration("dedicated", "Exists"),)),
        None,
    ),
    "the GPU model is allowed": (NodeRules(gpu_models=("A100", "H100"), tolerations=ANY), None),
    "another GPU model": (NodeRules(gpu_models=("A100",)), Misfit.GPU_MODEL),
    "the capacity type is allowed": (NodeRules(capacity_types=("spot",), tolerations=ANY), None),
    "another capacity type": (NodeRules(capacity_types=("on-demand",)), Misfit.CAPACITY_TYPE),
    "the selector matches": (NodeRules(selector=(("rack", "r1"),), tolerations=ANY), None),
    "the selector does not match": (
        NodeRules(selector=(("cores", "96"), ("rack", "r2"))),
        Misfit.SELECTOR,
    ),
    "one of the terms is enough": (NodeRules(terms=((IN_R2,), (IN_R1,)), tolerations=ANY), None),
    "all of a term is needed": (NodeRules(terms=((IN_R2, IN_R1),)), Misfit.AFFINITY),
    "an empty term matches nothing": (NodeRules(terms=((),)), Misfit.AFFINITY),
    "the node's own name": (
        NodeRules(
            terms=((Requirement("metadata.name", "In", ("n1",), is_field=True),),),
            tolerations=ANY,
        ),
        None,
    ),
    "another node's name": (
        NodeRules(terms=((Requirement("metadata.name", "In", ("n2",), is_field=True),),)),
        Misfit.AFFINITY,
    ),
}


@pytest.mark.parametrize(("rules", "want"), RULES.values(), ids=RULES)
def test_misfit(rules, want):
    assert want == misfit(NODE, rules)
    assert (want is None) == bool(Columns([NODE]).mask(rules)[0])


def test_taints_of_a_nodes_state_do_not_last():
    taint = Taint("node.kubernetes.io/not-ready", "", "NoExecute")
    columns = Columns([Node("n1", 8, taints=(taint,))])

    assert [False] == columns.mask(NodeRules()).tolist()
    assert [True] == columns.mask(NodeRules(), lasting=True).tolist()


def test_causes_count_each_node_once_under_the_first_thing_that_keeps_it_out():
    columns = Columns([NODE, Node("n2", 8, gpu_model="H100", capacity_type="on-demand")])
    rules = NodeRules(gpu_models=("H100",), capacity_types=("spot",), selector=(("rack", "r9"),))

    assert {Misfit.CAPACITY_TYPE: 1, Misfit.SELECTOR: 1} == columns.causes(rules)
