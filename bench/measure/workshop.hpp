// The fio of this run: where it keeps its own files, its version, and the I/O engine that works here.
#pragma once

#include "base/threads.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/scratch.hpp"

namespace spark::bench {

// Owns a scratch folder (scratch.hpp) in the system's temporary one, for fio's own files; removed with it, or
// by the next run if this one is killed.
class Workshop {
 public:
  // NotFound if there is no fio; Unsupported if neither io_uring nor libaio works.
  static Result<Workshop> open(const std::string& fio_program, const Owner& owner, const StopFlag& stop);

  Workshop(Workshop&& other) noexcept : setup(std::move(other.setup)), facts(std::move(other.facts)) {
    other.setup.aux_folder.clear();
  }
  Workshop& operator=(Workshop&&) = delete;
  ~Workshop();

  FioSetup setup;
  FioFacts facts;

 private:
  Workshop() = default;
  Result<> make_folder(const Owner& owner);
  Result<> read_version();
  Result<> choose_engine(const StopFlag& stop);
};

}  // namespace spark::bench
