"""The small things of ``torch.distributed.elastic.utils``."""

import logging
import os

from torch.distributed.elastic.utils import get_env_variable_or_raise, get_socket_with_port, macros
from torch.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from torch.distributed.elastic.utils.distributed import get_free_port
from torch.distributed.elastic.utils.logging import get_logger

data = list(range(23))
for replicas in (1, 2, 3):
    for start in (0, 5, 21):
        for rank in range(replicas):
            sampler = ElasticDistributedSampler(data, replicas, rank, start)
            sampler.set_epoch(start)
            print(replicas, start, rank, len(sampler), list(sampler))
try:
    ElasticDistributedSampler(data, 2, 0, 23)
except ValueError as error:
    print("ValueError", error)
for n, start in ((3, 0), (3, 2), (0, 0), (2, 5)):
    print(list(CyclingIterator(n, lambda epoch: iter([epoch] * epoch + ["x"]), start)))
print(list(CyclingIterator(3, lambda epoch: iter([]))))
os.environ["SOME"] = "1"
print(get_env_variable_or_raise("SOME"), macros.substitute(["--rank=${local_rank}", "x", "$other"], "3"))
try:
    get_env_variable_or_raise("NOT_SET_AT_ALL")
except ValueError as error:
    print("ValueError", error)
with get_socket_with_port() as found:
    print(found.getsockname()[1] > 0, get_free_port() > 0)
os.environ["LOGLEVEL"] = "INFO"
logger = get_logger()
print(logger.name, logging.getLevelName(logger.level), get_logger("own").name)
