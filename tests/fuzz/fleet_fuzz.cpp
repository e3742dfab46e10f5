// What peers may send and request: never a crash, and what is taken is written back as it was read. A peer's
// walk is a manifest: manifest_fuzz.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fleet/protocol/request.hpp"
#include "fleet/protocol/set_state.hpp"
#include "fleet/transport/http.hpp"
#include "staging/files/walk.hpp"

using namespace spark::fleet;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_heads(std::string text) {
  std::string answers = text;
  for (auto head = parse_request(text); head && *head; head = parse_request(text)) {
    if (const auto request = parse_target((*head)->target))
      require(parse_target(to_target(*request)) == request);
  }
  for (auto head = parse_answer(answers); head && *head; head = parse_answer(answers)) {
    if ((**head).status < 100) continue;  // "HTTP/1.1 007"
    std::string written = to_text(**head);
    const auto again = parse_answer(written);
    require(again && *again && to_text(**again) == to_text(**head));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_heads(text);
  check_heads(request_text(text));
  if (const auto request = parse_target(text)) require(parse_target(to_target(*request)) == request);
  if (const auto state = parse_set_state(text, 10'000)) {
    const auto again = parse_set_state(to_text(*state), 10'000);
    require(again && *again == *state);
  }
  if (const auto notes = spark::staging::parse_walk_notes(text)) {
    const auto again = spark::staging::parse_walk_notes(spark::staging::to_text(*notes));
    require(again && spark::staging::to_text(*again) == spark::staging::to_text(*notes));
  }
  return 0;
}
