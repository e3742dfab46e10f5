// Copies one regular file of any size and kind through the lanes: read directly, hashed, written directly.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

// Digests of the pieces that an earlier attempt flushed; none for the others.
using KnownPieces = std::vector<std::optional<Digest>>;

// `entry` is brought up to date: what was found when the file was opened, and its hash. A file that changes
// while it is read is read again, three times at most. `known`: what of this very file the partial copy has.
std::unique_ptr<FileWork> copy_file(const CopyContext& context, Entry& entry, const KnownPieces* known);

}  // namespace spark::staging
