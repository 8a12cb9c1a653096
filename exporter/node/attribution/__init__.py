"""Attribution: finds the containers that each device is allocated to, by the kubelet's list, and makes their series."""
