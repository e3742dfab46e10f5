// An additional source for the files of a set: other hosts that stage the same set. The caller implements it;
// a run without an exchange reads everything from the source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/io/io.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/source_identity.hpp"

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

  virtual void begin(const SetOrigin& origin) = 0;  // called first

  // The source's entries: from a host that has walked the same state, or from `own`, a walk on this host.
  using Walk = std::function<Result<Walked>()>;
  virtual Result<Walked> walk(const Walk& own) = 0;

  // Copies as much as it can, from other hosts and from the source, and removes it from the two lists; the
  // caller copies the rest. An error concerns the source or the local drive, never another host.
  virtual Result<> copy(ExchangeJob& job) = 0;

  // Whether another host has published this set, in the same state and with this hash.
  virtual bool is_published_elsewhere(const std::string& hash) = 0;
};

}  // namespace spark::staging
