// /etc/nvme/hostnqn and /etc/nvme/hostid: read and checked against each other, made and written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// Of 36 characters, in either case; of zeros alone.
bool is_uuid(std::string_view text);
bool is_zero_uuid(std::string_view uuid);

// NotFound: a file is missing or empty (says how to make both). Invalid: not an NQN, not a UUID, or all zero.
Result<HostIdentity> read_host_identity(const SystemRoot& root);

// A sentence when the UUID of a uuid-NQN is not the host id. No error: the packages of nvme-cli in Debian and
// Ubuntu make the two files so, and kernels and targets accept it.
std::optional<std::string> identity_doubt(const HostIdentity& host);

// A unique identity: of random numbers, not of the board's UUID as with `nvme gen-hostnqn`, because many
// boards and cloned machines share one.
Result<HostIdentity> fresh_host_identity(const SystemRoot& root);

// Replaces the current identity, durably and readable by all; returns the names of the copies (*.old) of
// the current files. No controller may be connected.
Result<std::vector<std::string>> write_host_identity(const SystemRoot& root, const HostIdentity& host);

// Makes and writes one where the file of the NQN is missing or empty, as in a new state folder of a
// container; true if it did. An NQN that is there is never replaced. A host ID without one, perhaps that of
// an image, is kept as a copy only.
Result<bool> make_missing_host_identity(const SystemRoot& root);

}  // namespace spark::nvmetcp
