"""Takes MPI away from some ranks: processes that tests start find it here."""

import os
import sys

if os.environ.get("OMPI_COMM_WORLD_RANK") in os.environ["RANKS_WITHOUT_MPI"].split(","):
    sys.modules["mpi4py"] = None
