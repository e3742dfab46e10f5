#include "tests/histories/engine/history.hpp"

#include <numeric>
#include <random>
#include <sstream>

#include "daemon/launch.hpp"

namespace spark::histories {
namespace {

// std::uniform_int_distribution differs between libraries; this does not. The bias is of no importance here.
std::uint32_t below(std::mt19937_64& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random() % limit);
}

}  // namespace

History generate(const Area& area, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  History history{seed, {}};
  const unsigned total = std::accumulate(area.actions.begin(), area.actions.end(), 0U,
                                         [](unsigned sum, const Action& one) { return sum + one.weight; });
  const std::uint32_t shortest = area.longest / 3;
  const std::uint32_t length = shortest + below(random, area.longest - shortest + 1);
  while (history.steps.size() < length) {
    std::uint32_t drawn = below(random, total);
    auto action = area.actions.begin();
    while (drawn >= action->weight) drawn -= (action++)->weight;
    Step step{action->name, {}};
    for (auto& die : step.dice) die = static_cast<std::uint32_t>(random());
    history.steps.push_back(std::move(step));
  }
  return history;
}

Outcome run(const Area& area, const History& history, const Story& story) {
  Outcome outcome;
  try {
    const auto world = area.make(history.seed, story);
    outcome.violation = world->check();
    for (const Step& step : history.steps) {
      if (outcome.violation) break;
      ++outcome.taken;
      world->take(step);
      outcome.violation = world->check();
    }
    if (!outcome.violation) outcome.violation = world->settle();
    outcome.elapsed = world->elapsed();
  } catch (...) {
    outcome.violation = Violation{"exception", in_words(std::current_exception())};
  }
  return outcome;
}

std::string to_text(const History& history) {
  std::ostringstream text;
  text << "seed " << history.seed << "\n";
  for (const Step& step : history.steps) {
    text << step.action;
    for (const auto die : step.dice) text << " " << die;
    text << "\n";
  }
  return text.str();
}

Result<History> from_text(const std::string& text) {
  History history;
  std::istringstream lines(text);
  bool has_seed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (!has_seed) {
      if (first != "seed" || !(words >> history.seed))
        return fail(Errc::Invalid, "a history begins with \"seed NUMBER\", not with \"" + line + "\"");
      has_seed = true;
      continue;
    }
    Step step{first, {}};
    for (auto& die : step.dice) {
      if (!(words >> die)) return fail(Errc::Invalid, "a step has four numbers; \"" + line + "\" has not");
    }
    history.steps.push_back(std::move(step));
  }
  if (!has_seed) return fail(Errc::Invalid, "the history is empty");
  return history;
}

}  // namespace spark::histories
