"""What ties the daemon to its machine: systemd, the control socket, one instance a state folder."""
