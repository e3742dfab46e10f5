"""torchrun of Debian 12, which has PyTorch 1.13 with Python 3.11: there, iterating a flag no longer gives its zero, and torchrun finds
no value for its own default."""
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.run import main

Std.from_str = classmethod(lambda cls, text: cls(int(text)))
main()
