// TLS 1.3 with a pre-shared key. The kernel encrypts, the service tlshd (ktls-utils) does the handshake for
// it, and the key lies in the kernel's keyring ".nvme" under an identity of host NQN and subsystem NQN
// (NVMe/TCP transport 1.0c, 3.6.1.3), as both sides derive it from the text in the key file.
#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/security/secret_file.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// "NVMeTLSkey-1:HH:BASE64:", for SHA-256 or SHA-384. Invalid; no error quotes the key.
Result<Secret> parse_tls_key(std::string_view key);

// The one that the options name. Refused, with the file's name: as read_keys() (keys.hpp).
Result<Secret> read_tls_key(const ConnectOptions& options);

// Into the kernel's keyring, in place of one for the same two. The transport has to be loaded: the keyring
// comes with it. Unsupported: this kernel, or the libnvme that this program was built with (before 1.4), has
// no such keys.
Result<> insert_tls_key(const Secret& key, const std::string& host_nqn, const std::string& subsystem);

// The controller's queues are encrypted, as sysfs shows, if the options ask for it. Refused: they are not.
Result<> check_tls_in_force(const SystemRoot& root, const std::string& controller,
                            const ConnectOptions& options);

}  // namespace spark::nvmetcp
