// Makes a partial area's `data` equal to a walked source, and durable.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/threads.hpp"
#include "staging/copy/clone.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/resume.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {

struct Filled {
  Manifest manifest;                             // of the copy; the caller fills in its name
  Bytes resumed_bytes = 0, unchanged_bytes = 0;  // see CopyReport
  std::vector<std::string> warnings;
};

struct CopyJob {
  const Tree* source = nullptr;
  Walked walked;
  PartialArea* area = nullptr;
  std::optional<Previous> previous;  // of the same dataset: unchanged files are taken over from it
  const CopyOptions* options = nullptr;
  const StopFlag* stop = nullptr;
  WallTime now;
  std::function<void(const std::string& path, Bytes offset)> before_read;  // see CopyContext
};

// The caller checks the space first: see check_space. After an error, finished files stay for the next
// attempt. `resumed`: see resume().
Result<Filled> fill(CopyJob job, Resumed resumed, Monitor& monitor);

// A run's report about a copy, published or served.
CopyReport report_of(const Summary& summary, const Monitor& monitor);
void add_notes(CopyReport& report, const WalkNotes& notes);

}  // namespace spark::staging
