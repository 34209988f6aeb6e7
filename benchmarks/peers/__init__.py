"""gramian against its peers on the CPU: jobs, contenders, goals, and the limits of the machine."""
