// The fio of this run: its temporary files, its version, and a working I/O engine.
#pragma once

#include "base/threads.hpp"
#include "bench/files/scratch.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/measure/bench.hpp"

namespace spark::bench {

// Owns a scratch folder (scratch.hpp) in the system's temporary folder for fio's own files. Removed by the
// destructor, or by the next run if this one is killed.
class FioEnvironment {
 public:
  // NotFound if there is no fio; Unsupported if neither io_uring nor libaio works.
  static Result<FioEnvironment> open(const std::string& fio_program, const Owner& owner,
                                     const StopFlag& stop);

  FioEnvironment(FioEnvironment&& other) noexcept
      : setup(std::move(other.setup)), facts(std::move(other.facts)) {
    other.setup.aux_folder.clear();
  }
  FioEnvironment& operator=(FioEnvironment&&) = delete;
  ~FioEnvironment();

  FioSetup setup;
  FioFacts facts;

 private:
  FioEnvironment() = default;
  Result<> make_folder(const Owner& owner);
  Result<> read_version();
  Result<> choose_engine(const StopFlag& stop);
};

}  // namespace spark::bench
