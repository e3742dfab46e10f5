#include "bench/hosts/together.hpp"

namespace spark::bench {

Result<> Together::start(Launcher launcher, const std::vector<std::string>& hosts,
                         const std::vector<std::string>& command) {
  const std::string parts = std::to_string(hosts.size() + 1);
  for (const std::string& host : hosts) {
    std::vector<std::string> words = command;
    for (const std::string& word :
         {std::string("--part"), std::to_string(runs_.size() + 1), std::string("--parts"), parts})
      words.push_back(word);
    auto run = HostRun::start(launcher, host, words);
    if (!run) return run.take_error();
    runs_.push_back(std::move(*run));
  }
  return {};
}

Result<> Together::step(unsigned cell, Duration patience, const StopFlag& stop,
                        const std::function<void(const std::string&)>& tell) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (HostRun& run : runs_) {
    tell(run.host());
    if (auto reached = run.wait_for_cell(cell, end, stop); !reached) return reached;
  }
  for (HostRun& run : runs_) run.let_go_on();
  return {};
}

Result<std::vector<Record>> Together::records(Duration patience, const StopFlag& stop) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::vector<Record> records;
  for (HostRun& run : runs_) {
    auto record = run.record(end, stop);
    if (!record) return record.take_error();
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace spark::bench
