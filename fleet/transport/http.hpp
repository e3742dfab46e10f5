// HTTP/1.1 between hosts of a fleet: only the heads. A body goes directly from the connection to its
// destination. The only code of the fleet that uses Boost.Beast.
#pragma once

#include <optional>
#include <span>
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
  Bytes length = 0;                        // length of the body
  std::optional<staging::Digest> piece{};  // of the piece in the body
  std::optional<staging::Digest> file{};   // of the file that it belongs to
  bool is_plain = false;                   // the file is known to have neither attributes nor ACLs
};

std::string to_text(const AnswerHead& head);
std::string request_text(const std::string& target);

// `buffered` keeps bytes received after a head, for the next call or as the start of the body. No value:
// closed.
Result<std::optional<RequestHead>> read_request(Channel& channel, std::string& buffered);
Result<AnswerHead> read_answer(Channel& channel, std::string& buffered);
// The body, or its next part, that fills `into`.
Result<> read_body(Channel& channel, std::string& buffered, std::span<char> into);
// Drops so many bytes of the body.
Result<> skip_body(Channel& channel, std::string& buffered, Bytes bytes);

// The same for a text. Invalid if it is not a head; no value if it is incomplete.
Result<std::optional<RequestHead>> parse_request(std::string& buffered);
Result<std::optional<AnswerHead>> parse_answer(std::string& buffered);

}  // namespace spark::fleet
