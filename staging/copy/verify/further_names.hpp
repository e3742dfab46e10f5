// The further names of hard-linked files, as they are in a copy.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Finds those that lead to another file than the names before them, as after a restore without links: what
// that file contains isn't known from the others.
class FurtherNames {
 public:
  explicit FurtherNames(const Tree& copy) : copy_(copy) {}

  // For all entries of a manifest, in its order.
  bool is_split(const Entry& entry);

 private:
  using File = std::optional<std::pair<dev_t, ino_t>>;  // none: it is missing

  const Tree& copy_;
  std::map<std::string, File, std::less<>>
      files_;  // that further names lead to, by the path of the first name

  File file_of(std::string_view path) const;
};

}  // namespace spark::staging
