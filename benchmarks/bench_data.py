"""Passes over data in memory, and files."""
import os
import tempfile

import cgrad as cg

from .common import Seeded, require


class Pass(Seeded):
    """One pass over 100,000 rows in batches of 64."""
    params = [[False, True], [0, 2]]
    param_names = ["shuffle", "threads"]

    def setup(self, shuffle, threads):
        super().setup()
        data = require("data")
        rows = data.TensorDataset(cg.randn(100_000, 32), cg.arange(100_000))
        self.loader = data.DataLoader(rows, batch_size=64, shuffle=shuffle, num_workers=threads)

    def time_pass(self, shuffle, threads):
        for _ in self.loader:
            pass


class Files(Seeded):
    """The state of a network: 40 MB in 20 tensors, or 100 small ones."""
    params = [["npz", "safetensors"], ["large", "small"]]
    param_names = ["format", "tensors"]

    def setup(self, format, tensors):
        super().setup()
        self.folder = tempfile.TemporaryDirectory()                  # first, since a skipped benchmark is torn down, too
        require("save")
        if format == "safetensors":
            try:
                import safetensors  # noqa: F401
            except ImportError:
                raise NotImplementedError from None
        self.path = os.path.join(self.folder.name, f"state.{format}")
        n, shape = (20, (500, 1000)) if tensors == "large" else (100, (10,))
        self.state = {f"w{i}": cg.randn(*shape) for i in range(n)}
        cg.save(self.state, self.path)

    def teardown(self, format, tensors):
        self.folder.cleanup()

    def time_save(self, format, tensors):
        cg.save(self.state, self.path)

    def time_load(self, format, tensors):
        cg.load(self.path)
