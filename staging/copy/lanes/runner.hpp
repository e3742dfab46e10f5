// A few threads, each with a ring and its lanes, that process files piece by piece: all lanes work on a large
// file, one lane on a small one. Other threads open and finish the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/piece_limit.hpp"
#include "staging/copy/lanes/piece_queue.hpp"
#include "staging/copy/lanes/shape.hpp"
#include "staging/files/io/io.hpp"

namespace spark::staging {

struct RunPlan {
  IoKind io = IoKind::Auto;
  Shape shape;                        // threads, lanes and chunk; without io_uring each lane is a thread
  const PieceLimit* limit = nullptr;  // none means as many pieces as lanes
  Counters* counters = nullptr;
  std::uint64_t files = 0;
  std::function<std::unique_ptr<FileWork>(std::uint64_t index)> work_for;
  // The next unit that a reader waits for: its piece goes first, and the rest of its file after it. While the
  // run is slow, the unit goes before its piece. May be empty.
  NextWanted wanted{};
};

// The first error ends the run, as does one in another part of it.
Result<> run(const RunPlan& plan, RunEnd& end);

}  // namespace spark::staging
