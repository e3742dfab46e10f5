// The kernel's log messages during an operation: for some refusals the only source of the reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace spark {

// Starts listening when made. Without the right to read the log there are just no lines.
class KernelLog {
 public:
  explicit KernelLog(const SystemRoot& root);

  // The messages since then that contain the word, oldest first, without the record's prefix. Never waits.
  std::vector<std::string> lines(std::string_view word);

 private:
  UniqueFd fd_;
};

// The message of one /dev/kmsg record: "4,1234,567890,-;nvme nvme1: …\n KEY=value".
std::string message_of_kmsg_record(std::string_view record);

}  // namespace spark
