// Another way to get the files of a set: from hosts that stage the same one. What it is, is its maker's; a
// run without one reads all of it from the source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/io/io.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct ExchangeJob {
  CopyContext& context;
  Entries& entries;
  const Resumed& resumed;
  std::vector<Entry*>&small, &large;  // to copy, sorted by path; see is_small
  IoKind io;
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // First: which state of a volume is copied, see Source::state; empty: nothing names it.
  virtual void begin(const std::string& state) = 0;

  // The source's entries: from a host that sees the same state and has walked it, or from `own`, a walk here.
  using Walk = std::function<Result<Walked>()>;
  virtual Result<Walked> walk(const Walk& own) = 0;

  // Copies what it can, from others and from the source, and takes that out of the two lists; the caller
  // copies what stays. An error is one of the source's or of the local drive's, never another host's.
  virtual Result<> copy(ExchangeJob& job) = 0;

  // Whether another host has published this set, of the same state, with this hash.
  virtual bool is_published_elsewhere(const std::string& hash) = 0;
};

}  // namespace spark::staging
