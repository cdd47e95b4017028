"""Data-parallel PyTorch on the handwritten digits that scikit-learn ships: 1,797 of 8 x 8 pixels.

The same script runs alone (`python digits.py`), under torchrun on CPUs with gloo, and on GPUs with
NCCL. Each epoch shows every training digit several times, each time turned, scaled and shifted
anew, and ends with a checkpoint; started again, training goes on after the last verified one.
"""

import gzip
import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import affine_grid, cross_entropy, grid_sample
from torch.nn.parallel import DistributedDataParallel

import muster_sdk as muster

EPOCHS = int(os.environ.get("DIGITS_EPOCHS", "8"))
PASSES = 3  # over the training digits in one epoch, each time drawn differently
BATCH = 64  # of all ranks together, so that more of them train the same model
TEST_DIGITS = 360

Digits = tuple[Tensor, Tensor]


def main() -> None:
    """Train, or go on training."""
    rank, world_size, device = join()
    torch.manual_seed(0)  # The same model on every rank; data comes from generators of its own.
    train, test = digits(device)
    model = network().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS, eta_min=1e-4)
    trained = DistributedDataParallel(model) if world_size > 1 else model

    # In a job the platform says where; alone, nothing is kept unless this says so.
    run = muster.init(checkpoints=os.environ.get("DIGITS_CHECKPOINTS"))
    start = run.restore(model=model, optimizer=optimizer, schedule=schedule)
    if rank == 0:
        print(f"resumed from {start.id}" if start else "starting anew", flush=True)

    for epoch in run.epochs(EPOCHS):
        began = time.monotonic()
        for images, labels in batches(train, epoch, rank, world_size):
            optimizer.zero_grad()
            loss = cross_entropy(trained(images), labels)
            loss.backward()
            optimizer.step()
            run.step(loss=loss.item())
        schedule.step()
        accuracy = accuracy_of(model, test)
        run.log(accuracy=accuracy)
        if rank == 0:
            seconds = time.monotonic() - began
            print(f"epoch {epoch}: accuracy {accuracy:.4f}, {seconds:.1f} s", flush=True)
        run.save(model=model, optimizer=optimizer, schedule=schedule)
    if rank == 0:
        accuracy = accuracy_of(model, test)
        print(f"accuracy {accuracy:.4f} on {TEST_DIGITS} digits never seen", flush=True)
    if world_size > 1:
        dist.destroy_process_group()


def join() -> tuple[int, int, torch.device]:
    """This process's rank, the number of ranks and its device; joins the others under torchrun."""
    has_gpu = torch.cuda.is_available()
    device = torch.device("cpu")
    torch.set_num_threads(1)  # More cores slow so small a network down.
    if has_gpu:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if not dist.is_torchelastic_launched():
        return 0, 1, device
    dist.init_process_group("nccl" if has_gpu else "gloo")
    return dist.get_rank(), dist.get_world_size(), device


def digits(device: torch.device) -> tuple[Digits, Digits]:
    """The digits to train on, and those to test with."""
    # What sklearn.datasets.load_digits() reads. Importing scikit-learn for it takes longer than
    # an epoch, in every process.
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise SystemExit("the digits come with scikit-learn: pip install scikit-learn")
    with gzip.open(
        Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", "rt"
    ) as file:
        table = torch.from_numpy(np.loadtxt(file, delimiter=",", dtype=np.float32))
    table = table[torch.randperm(len(table), generator=torch.Generator().manual_seed(0))]
    images = (table[:, :64] / 16).reshape(-1, 1, 8, 8).to(device)
    labels = table[:, 64].long().to(device)
    test, train = slice(0, TEST_DIGITS), slice(TEST_DIGITS, None)
    return (images[train], labels[train]), (images[test], labels[test])


def network() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def batches(train: Digits, epoch: int, rank: int, world_size: int) -> Iterator[Digits]:
    """This rank's share of an epoch: a function of its arguments, so that it can be had again."""
    images, labels = train
    order = torch.Generator().manual_seed(epoch)
    drawn = torch.Generator().manual_seed(epoch * world_size + rank)
    share = BATCH // world_size
    for _ in range(PASSES):
        shuffled = torch.randperm(len(images), generator=order)
        # Every rank has as many batches as the others, since they average their gradients.
        whole = len(images) // BATCH * BATCH
        for first in range(rank * share, whole, BATCH):
            chosen = shuffled[first : first + share].to(images.device)
            yield distorted(images[chosen], drawn), labels[chosen]


def distorted(images: Tensor, drawn: torch.Generator) -> Tensor:
    """The images, each turned by up to 15 degrees, scaled by up to 10 % and shifted by a pixel."""
    count = len(images)
    angle = (torch.rand(count, generator=drawn) - 0.5) * torch.pi / 6
    scale = 1 + (torch.rand(count, generator=drawn) - 0.5) / 5
    shift = (torch.rand(count, 2, generator=drawn) - 0.5) / 2
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1)
    turn = turn.reshape(-1, 2, 2) * scale.reshape(-1, 1, 1)
    matrices = torch.cat([turn, shift.reshape(-1, 2, 1)], dim=2).to(images.device)
    places = affine_grid(matrices, list(images.shape), align_corners=False)
    return grid_sample(images, places, align_corners=False)


def accuracy_of(model: nn.Module, test: Digits) -> float:
    """The share of test digits that *model* reads right."""
    images, labels = test
    with torch.no_grad():
        right = model(images).argmax(dim=1) == labels
    return int(right.sum()) / len(labels)


if __name__ == "__main__":
    main()
