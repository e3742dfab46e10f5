"""The service's mounts must be in the machine's namespace: no setting in our units may give the service its own mount
namespace.

Each of these does (systemd's exec_needs_mount_namespace); a mount made inside would be invisible to every job.
"""
import re

NAMESPACE = (
    "RootDirectory RootImage RootHash MountAPIVFS MountFlags ReadWritePaths ReadOnlyPaths InaccessiblePaths ExecPaths "
    "NoExecPaths BindPaths BindReadOnlyPaths TemporaryFileSystem MountImages ExtensionImages ExtensionDirectories "
    "PrivateTmp PrivateDevices PrivateMounts PrivateUsers PrivateIPC IPCNamespacePath ProtectSystem ProtectHome "
    "ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectControlGroups ProtectProc ProcSubset "
    "DynamicUser LogNamespace ReadWriteDirectories ReadOnlyDirectories InaccessibleDirectories").split()


def check(path, text):
    return [f"{path}:{number}: {found.group(1)}= gives the service a mount namespace: no job would see its mounts"
            for number, line in enumerate(text.split("\n"), 1)
            if (found := re.match(r"\s*(\w+)\s*=", line)) and found.group(1) in NAMESPACE]
