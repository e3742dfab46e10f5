// Whether a source stayed as it was walked while it was read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/outside_links.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/hash.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

class QuietSource {
 public:
  QuietSource() = default;  // check() asks nothing
  explicit QuietSource(const Entries& walked);

  // Walks the source again. Mismatch: a file was added, removed or changed since.
  Result<> check(const Tree& source, const std::vector<std::string>& exclude, OutsideLinks links,
                 const StopFlag& stop) const;

 private:
  std::optional<Digest> walked_;
};

}  // namespace spark::staging
