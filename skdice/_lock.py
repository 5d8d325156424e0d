"""One lock over what a process has only once.

That is the verbosity and patches of transformers, warning filters, and a GPU that records.
"""

import os
import threading

# The thread that holds it may take it again, as a fit within a fit does.
PROCESS = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits until no other thread holds it: the child would find it locked for ever.
    os.register_at_fork(
        before=PROCESS.acquire, after_in_parent=PROCESS.release, after_in_child=PROCESS.release
    )
