// Copies one regular file of any size and kind through the lanes: read directly, hashed, written directly.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

// Digests of the pieces that an earlier attempt flushed; none for the other pieces.
using KnownPieces = std::vector<std::optional<Digest>>;

// Updates `entry` with the metadata found on opening the file, and with the hash. A file that changes while
// it is read is read again, three times at most. `known`: the pieces of this file in the partial copy.
std::unique_ptr<FileWork> copy_file(const CopyContext& context, Entry& entry, const KnownPieces* known);

}  // namespace spark::staging
