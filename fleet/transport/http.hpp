// HTTP/1.1 between hosts of a fleet: heads alone. A body goes straight from the connection to where it
// belongs. The only code of the fleet that sees Boost.Beast.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"
#include "fleet/transport/channel.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::fleet {

struct RequestHead {
  bool is_get = false;
  std::string target;
};

struct AnswerHead {
  unsigned status = 200;
  Bytes length = 0;  // of the body
  std::optional<staging::Digest> piece,
      file;               // of the piece that the body is; of the file that it belongs to
  bool is_plain = false;  // that file is known to have neither attributes nor ACLs
};

std::string to_text(const AnswerHead& head);
std::string request_text(const std::string& target);

// `buffered`: what was read beyond a head, for the next call or as the begin of the body. No value: closed.
Result<std::optional<RequestHead>> read_request(Channel& channel, std::string& buffered);
Result<AnswerHead> read_answer(Channel& channel, std::string& buffered);

// The same of a text: Invalid if it is no head, no value if it is not all there yet.
Result<std::optional<RequestHead>> parse_request(std::string& buffered);
Result<std::optional<AnswerHead>> parse_answer(std::string& buffered);

}  // namespace spark::fleet
