#include "cli/format/unfinished_format.hpp"

namespace spark::cli {

UnfinishedFormat::UnfinishedFormat(const SystemRoot& root, const std::string& volume,
                                   const std::string& subsystem, const nvmetcp::Namespace& block)
    : file_(root / ("var/lib/spark-stage/formatting/" + volume)) {
  if (block.id().empty()) return;
  namespace_ =
      subsystem + " " + std::to_string(block.nsid) + " " + block.id() + " " + std::to_string(block.bytes);
}

bool UnfinishedFormat::is_there() const {
  const auto noted = read_line_file(file_);
  return noted && !namespace_.empty() && *noted == namespace_;
}

Result<> UnfinishedFormat::begin() const {
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  if (error) return fail_errno(error.value(), "making folder " + file_.parent_path().native());
  return write_file_atomically(file_, namespace_ + "\n");
}

void UnfinishedFormat::end() const {
  std::error_code ignored;  // a note that stays is of a namespace that carries a signature from now on
  std::filesystem::remove(file_, ignored);
}

}  // namespace spark::cli
