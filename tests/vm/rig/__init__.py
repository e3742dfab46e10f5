"""Virtual machines to test spark-stage on a real kernel: images, machines, one wire, targets and hosts."""
