"""Commands run in a sandbox: policy, implementations, and which layers are active on this machine."""
