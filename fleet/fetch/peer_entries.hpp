// The list of a set's entries as a peer has sent it.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Reads the manifest that the peer has sent. What a peer says gets the checks of an entry of this host:
// Invalid if it is no tree of files below one root, names a file larger than a copy takes, or a further name
// of something else than an earlier file. The entries' hashes, which are those of the peer's copy, stay.
Result<staging::Manifest> read_peer_entries(const std::filesystem::path& path, const std::string& peer);

}  // namespace spark::fleet
