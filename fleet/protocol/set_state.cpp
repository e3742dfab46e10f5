#include "fleet/protocol/set_state.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "fleet/protocol/request.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kWords[] = {"none", "staging", "published"};
constexpr std::string_view kReads[] = {"normally", "slowly", "never"};
constexpr std::size_t kLongestLine = 1024;

tl::unexpected<Error> no_state() {
  return fail(Errc::Invalid, "a peer's answer is not the state of the set");
}

// Hosts of an earlier version do not say it.
SetState::Reads parse_reads(const json::object& line) {
  const auto found = std::ranges::find(kReads, get_text(line, "reads"));
  return found == std::end(kReads) ? SetState::Reads::Normally
                                   : static_cast<SetState::Reads>(found - std::begin(kReads));
}

}  // namespace

std::string to_text(const SetState& state) {
  json::object line{{"state", kWords[static_cast<std::size_t>(state.kind)]},
                    {"node", node_text(state.node)},
                    {"units", state.unit_count}};
  if (!state.hash.empty()) line["hash"] = state.hash;
  if (state.reads != SetState::Reads::Normally) line["reads"] = kReads[static_cast<std::size_t>(state.reads)];
  std::string text = json::serialize(line) + "\n";
  const std::size_t start = text.size();
  text.resize(start + (state.units.size() + 3) / 4);
  for (std::size_t i = 0; i < state.units.size(); ++i) {
    const auto bits = static_cast<unsigned>(state.units[i]) << (i % 4 * 2);
    text[start + i / 4] = static_cast<char>(static_cast<unsigned char>(text[start + i / 4]) | bits);
  }
  return text;
}

Result<SetState> parse_set_state(std::string_view text, std::uint64_t most) {
  const std::size_t end = text.substr(0, kLongestLine).find('\n');
  if (end == std::string_view::npos) return no_state();
  const auto line = parse_json_object(text.substr(0, end));
  if (!line) return no_state();
  SetState state;
  const std::string word = get_text(*line, "state");
  const auto node = parse_node(get_text(*line, "node"));
  const auto units = get_int(*line, "units");
  if (!node || !units || *units < 0 || static_cast<std::uint64_t>(*units) > most) return no_state();
  state.node = *node;
  state.unit_count = static_cast<std::uint64_t>(*units);
  state.hash = get_text(*line, "hash");
  const std::string_view bits = text.substr(end + 1);
  if (word == kWords[1]) {
    state.kind = SetState::Kind::Staging;
    state.reads = parse_reads(*line);
  } else if (word == kWords[2]) {
    state.kind = SetState::Kind::Published;
  } else if (word != kWords[0]) {
    return no_state();
  }
  const std::uint64_t listed = state.kind == SetState::Kind::Staging ? state.unit_count : 0;
  if (bits.size() != (listed + 3) / 4) return no_state();
  state.units.reserve(listed);
  for (std::uint64_t i = 0; i < listed; ++i)
    state.units.push_back(
        static_cast<UnitState>(static_cast<unsigned char>(bits[i / 4]) >> (i % 4 * 2) & 3U));
  return state;
}

}  // namespace spark::fleet
