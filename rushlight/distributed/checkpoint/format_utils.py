"""Between checkpoints in folders and files that ``torch.save`` wrote."""

from __future__ import annotations

from ... import serialization
from ...compat import missing as _missing
from .default_planner import _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save
from .steps import Steps

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]

__getattr__ = _missing(__name__)


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path) -> None:
    """A checkpoint's folder as one file, all of it in the memory of this process meanwhile."""
    state_dict: dict = {}
    planner = _EmptyStateDictLoadPlanner()
    _load_state_dict(state_dict, FileSystemReader(dcp_checkpoint_dir), no_dist=True, planner=planner)
    serialization.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir) -> None:
    """A file as a checkpoint's folder."""
    state_dict = serialization.load(torch_save_path, weights_only=True)
    _save(state_dict, FileSystemWriter(dcp_checkpoint_dir), None, Steps(alone=True))
