// A git checkout's index: the digest that each file of the commit has.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "staging/files/tree.hpp"
#include "staging/models/published_file.hpp"

namespace spark::staging {

// Git's SHA-1 of the blob of each regular file, by path: of versions 2 to 4 of the index
// (git, Documentation/gitformat-index.txt). Mismatch if it is none of these.
Result<std::map<std::string, std::string>> parse_git_index(std::string_view index);

// The digests that the checkout in `folder` of the tree has of its files, by path: their SHA-1 in git, or for
// a file of Git LFS the SHA-256 of the object that its pointer names. Its pointer alone is in the index:
// without a local object, nothing is known of the file, and it is not listed. Empty if there is no index that
// can be read.
std::map<std::string, PublishedFile> files_of_checkout(const Tree& tree, const std::string& folder);

}  // namespace spark::staging
