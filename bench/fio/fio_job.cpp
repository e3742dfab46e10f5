#include "bench/fio/fio_job.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

namespace spark::bench {
namespace {

std::string option(std::string_view name, const std::string& value) {
  return "--" + std::string(name) + "=" + value;
}

std::string option(std::string_view name, std::uint64_t value) {
  return option(name, std::to_string(value));
}

// Options as typed, without blanks in any.
void add(std::vector<std::string>& command, std::string_view options) {
  for (std::string& word : split(options, ' ')) command.push_back(std::move(word));
}

// Options of every run. Threads, not processes, so that killing fio ends all of them.
std::vector<std::string> common(const FioSetup& setup) {
  std::vector<std::string> command = {setup.program};
  add(command, "--output-format=json+ --status-interval=1 --eta=never");
  command.push_back(option("aux-path", setup.aux_folder));
  add(command, "--name=global --thread --group_reporting --lat_percentiles=1 --clat_percentiles=0");
  add(command, "--verify_state_save=0 --randrepeat=0");
  return command;
}

std::vector<std::string> common(const FioSetup& setup, bool direct) {
  std::vector<std::string> command = common(setup);
  command.emplace_back(direct ? "--direct=1" : "--direct=0");
  // A data loader reads through the page cache with blocking read() calls.
  command.push_back(option("ioengine", direct ? setup.engine : "psync"));
  // A data loader gives the kernel no advice; fio's advice would double the read-ahead or disable it.
  if (!direct) command.emplace_back("--fadvise_hint=0");
  return command;
}

std::string joined_filenames(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const std::string& file : files) names.push_back(fio_filename(file).value_or(file));
  return join(names, ":");
}

}  // namespace

std::vector<Stream> deal_streams(const std::vector<DataFile>& files, unsigned count, Bytes block) {
  std::vector<DataFile> usable;
  std::copy_if(files.begin(), files.end(), std::back_inserter(usable),
               [&](const DataFile& file) { return file.bytes >= block; });
  std::vector<Stream> streams;
  if (usable.empty()) return streams;
  if (usable.size() >= count) {
    streams.resize(count);
    for (std::size_t i = 0; i < usable.size(); ++i) streams[i % count].files.push_back(usable[i].path);
    return streams;
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t which = i % usable.size();
    const DataFile& file = usable[which];
    const std::size_t sharers = count / usable.size() + (which < count % usable.size() ? 1 : 0);
    const std::size_t parts = std::min<std::size_t>(sharers, file.bytes / block);
    const std::size_t part = i / usable.size();
    if (part >= parts) continue;
    const Bytes length = file.bytes / parts / block * block;
    streams.push_back({{file.path}, part * length, length});
  }
  return streams;
}

void start_elsewhere(std::vector<Stream>& streams, const std::vector<DataFile>& files, unsigned round,
                     Bytes block, const HostPart& part) {
  constexpr double kGolden = 0.6180339887;  // golden ratio: spreads the starting points evenly for any number
                                            // of rounds
  const double whole = kGolden * round + part.share();
  const double share = (whole - static_cast<double>(static_cast<std::uint64_t>(whole))) / 2;
  for (Stream& stream : streams) {
    if (stream.files.size() != 1) {
      const std::size_t size = stream.files.size();
      const auto first = static_cast<std::ptrdiff_t>((round + part.offset_in(size)) % size);
      std::rotate(stream.files.begin(), stream.files.begin() + first, stream.files.end());
      continue;
    }
    const auto file = std::ranges::find(files, stream.files.front(), &DataFile::path);
    if (file == files.end()) continue;
    const Bytes length = (stream.bytes > 0 ? stream.bytes : file->bytes) / block * block;
    const Bytes skipped = static_cast<Bytes>(static_cast<double>(length) * share) / block * block;
    stream.offset += skipped;
    stream.bytes = length - skipped;
  }
}

std::vector<std::string> cell_command(const FioSetup& setup, const Scenario& scenario,
                                      const std::vector<Stream>& streams, const CellLimits& limits) {
  const bool direct = scenario.cache == Cache::Direct;
  std::vector<std::string> command = common(setup, direct);
  command.push_back(option("rw", std::string(scenario.fio_rw)));
  command.push_back(option("bs", scenario.block));
  command.push_back(option("iodepth", scenario.depth));
  command.emplace_back(direct ? "--time_based" : "--invalidate=1");
  command.push_back(option("runtime", std::to_string(limits.runtime.count()) + "s"));
  if (limits.rate > 0 && !streams.empty()) {
    const double each = limits.rate / static_cast<double>(streams.size());
    command.push_back(option("rate", static_cast<std::uint64_t>(std::max(1.0, each))));
  }
  add(command, "--file_service_type=sequential --allow_file_create=0");
  if (scenario.writes) {
    // Scrambled random buffers are incompressible, without the CPU cost of refilling each one.
    add(command, "--scramble_buffers=1 --overwrite=1 --end_fsync=1");
  } else {
    command.emplace_back("--readonly");
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    command.push_back(option("name", "stream" + std::to_string(i)));
    command.push_back(option("filename", joined_filenames(streams[i].files)));
    if (streams[i].bytes == 0) continue;
    command.push_back(option("offset", streams[i].offset));
    command.push_back(option("size", streams[i].bytes));
  }
  return command;
}

std::vector<std::string> layout_command(const FioSetup& setup, const std::vector<DataFile>& files,
                                        Bytes rate) {
  std::vector<std::string> command = common(setup, true);
  if (rate > 0) command.push_back(option("rate", rate));
  add(command, "--rw=write --bs=1048576 --iodepth=8 --fallocate=none --file_service_type=sequential");
  add(command, "--refill_buffers=1 --end_fsync=1 --name=layout");
  std::vector<std::string> names;
  Bytes bytes = 0;
  for (const DataFile& file : files) {
    names.push_back(file.path);
    bytes += file.bytes;
  }
  command.push_back(option("filename", joined_filenames(names)));
  command.push_back(option("size", bytes));
  return command;
}

std::string job_file(const std::vector<std::string>& command) {
  // Options of the fio program and its output, not of the job.
  constexpr std::array kNotOfTheJob = {"output-format", "status-interval", "eta", "aux-path"};
  std::string text;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string word = command[i].substr(std::min<std::size_t>(2, command[i].size()));
    const std::string name = word.substr(0, word.find('='));
    if (std::find(kNotOfTheJob.begin(), kNotOfTheJob.end(), name) != kNotOfTheJob.end()) continue;
    text += name == "name" ? "[" + word.substr(word.find('=') + 1) + "]\n" : word + "\n";
  }
  return text;
}

std::vector<std::string> probe_command(const FioSetup& setup, const std::string& file) {
  std::vector<std::string> command = common(setup);
  command.push_back(option("ioengine", setup.engine));
  add(command, "--direct=0 --rw=read --bs=4096 --size=4096 --readonly --allow_file_create=0 --name=probe");
  command.push_back(option("filename", joined_filenames({file})));
  return command;
}

std::optional<std::string> fio_filename(const std::string& path) {
  if (path.empty() || path.find_first_of("\\#;") != std::string::npos) return std::nullopt;
  if (path.back() == ' ' || path.back() == '\t' || path.back() == '\n' || path.back() == '\r') {
    return std::nullopt;
  }
  std::string escaped;
  for (const char c : path) {
    if (c == ':') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string shell_line(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_word(word));
  return join(words, " ");
}

}  // namespace spark::bench
