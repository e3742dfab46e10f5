#include "bench/measure/fio_environment.hpp"

#include <ctime>
#include <filesystem>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr Duration kProbeTime{30'000};

}  // namespace

Result<FioEnvironment> FioEnvironment::open(const std::string& fio_program, const Owner& owner,
                                            const StopFlag& stop) {
  FioEnvironment environment;
  environment.setup.program = fio_program;
  if (auto made = environment.make_folder(owner); !made) return made.take_error();
  if (auto read = environment.read_version(); !read) return read.take_error();
  if (auto chosen = environment.choose_engine(stop); !chosen) {
    return chosen.take_error();
  }
  return environment;
}

FioEnvironment::~FioEnvironment() {
  if (setup.aux_folder.empty()) return;
  std::error_code ignored;  // the system cleans its temporary folder
  std::filesystem::remove_all(setup.aux_folder, ignored);
}

Result<> FioEnvironment::make_folder(const Owner& owner) {
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).string();
  const std::string parent = error ? "/tmp" : temporary;
  (void)sweep_leftovers(parent, ::time(nullptr));  // contains no user data: not reported
  const std::string folder = parent + "/" + new_scratch_name();
  if (auto made = make_scratch(folder, owner); !made) return made;
  setup.aux_folder = folder;
  return {};
}

Result<> FioEnvironment::read_version() {
  auto output = run_child({setup.program, "--version"}, kProbeTime);
  if (!output) {
    if (output.error().kind == Errc::NotFound) output.error().hint = "install it: apt install fio";
    return output.take_error();
  }
  facts.version = printable(trim(output->out));
  if (output->exit_status == 0 && facts.version.starts_with("fio-")) return {};
  return fail(Errc::Unsupported,
              printable(setup.program) + " does not answer as fio: " + tail_of(output->out + output->err),
              "install fio: apt install fio");
}

Result<> FioEnvironment::choose_engine(const StopFlag& stop) {
  const std::string file = setup.aux_folder + "/" + kScratchData;
  if (auto written = write_file_atomically(file, std::string(4096, 'x')); !written) return written;
  for (const char* engine : {"io_uring", "libaio"}) {
    setup.engine = engine;
    FioRun probe;
    probe.command = probe_command(setup, file);
    probe.deadline = kProbeTime;
    probe.stop = &stop;
    auto end = run_fio(probe);
    if (!end) return end.take_error();
    if (end->stopped) return fail(Errc::Cancelled, "the benchmark was interrupted");
    const std::vector<std::string> faults = faults_of(*end, Direction::Read, 0);
    if (faults.empty()) {
      facts.engine = engine;
      return {};
    }
    if (!facts.engine_note.empty()) facts.engine_note += "; ";
    facts.engine_note += std::string(engine) + " does not work here: " + faults.front();
  }
  return fail(Errc::Unsupported, "fio can't do asynchronous I/O on this host: " + facts.engine_note,
              "let this process use io_uring or Linux AIO (seccomp, sysctl kernel.io_uring_disabled)");
}

}  // namespace spark::bench
