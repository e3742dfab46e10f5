// Whether a source stayed unchanged between its walk and the last read.
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
  QuietSource() = default;  // check() does nothing
  explicit QuietSource(const Entries& walked);

  // Walks the source again. Mismatch if a file was added, removed or changed since the first walk.
  Result<> check(const Tree& source, const std::vector<std::string>& exclude, OutsideLinks links,
                 const StopFlag& stop) const;

 private:
  std::optional<Digest> walked_;
};

}  // namespace spark::staging
