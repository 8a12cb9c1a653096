"""Attribution: which container every device is allocated to, as the kubelet reports it, and the series about it."""
