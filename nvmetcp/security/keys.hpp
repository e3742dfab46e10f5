// DH-HMAC-CHAP keys, from files that only their owner can read. A key is read by the connecting process,
// right before it connects, and goes to the kernel only: to no command line, log, answer or other process.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

struct Keys {
  std::string host, controller;  // "DHHC-1:…"; empty: not asked for
};

// "DHHC-1:HH:BASE64:", its length as HH says and its checksum right. Invalid; no error quotes the key.
Result<> check_key(std::string_view key);

// Those that the options name. Refused, with the file's name: it is not there, others than its owner can read
// it, it is not root's (or this process's user's), or its content is no key.
Result<Keys> read_keys(const ConnectOptions& options);

// The controller holds these keys, as sysfs shows. Refused: it was made without them, or with others.
Result<> check_keys_in_force(const SystemRoot& root, const std::string& controller,
                             const ConnectOptions& options, const Keys& keys);

// It was connected with keys of the kinds that are asked for, whichever.
bool holds_keys(const SystemRoot& root, const std::string& controller, const ConnectOptions& options);

// The kernel authenticates only where the target asks for it, and says in its log that it did. Refused: it
// did not.
Result<> check_authenticated(const std::vector<std::string>& kernel_log, const std::string& controller,
                             const ConnectOptions& options);

}  // namespace spark::nvmetcp
