#include "daemon/outputs/watch/other_hosts.hpp"

namespace spark::outputs {
namespace {

// A caller that waits asks each second.
constexpr Duration kBetweenQuestions{10'000}, kLongestWait{90'000};

}  // namespace

void OtherHosts::mark_stuck(std::vector<BegunCheckpoint>& begun) {
  auto before = std::exchange(begun_, {});
  for (BegunCheckpoint& one : begun) {
    one.is_stuck = false;
    const auto known = before.find(one.name);
    const bool is_same = known != before.end() && known->second.first == one;
    const SteadyTime now = context_.clock.steady(), since = is_same ? known->second.second : now;
    begun_[one.name] = {one, since};
    one.is_stuck = now - since >= context_.timings.others;
  }
}

void OtherHosts::plan(std::vector<std::string> checkpoints, uid_t owner) {
  planned_ = std::move(checkpoints);
  owner_ = owner;
}

void OtherHosts::stop() {
  is_stopped_ = true;
  timer_.cancel();
}

asio::awaitable<void> OtherHosts::announce() {
  while (!is_stopped_) {
    timer_.expires_after(context_.timings.sign);
    co_await timer_.wait();
    const auto place = context_.find_volume(output_.volume);
    if (is_stopped_ || planned_.empty() || !place) continue;
    json::object request{{"path", output_.to}, {"uid", owner_}, {"checkpoints", json::value_from(planned_)}};
    auto call = place->call(output_.volume, "announce-shards", std::move(request), context_.timings.list);
    // The next sign is due soon, and the sending tells what is wrong with the volume.
    static_cast<void>(co_await context_.runner.run(std::move(call)));
  }
}

bool OtherHosts::is_awaited(const Awaited& now, bool may_publish, SteadyTime asked) {
  const SteadyTime time = context_.clock.steady();
  if (!questions_ || asked - questions_->last > kBetweenQuestions) questions_ = Questions{{}, time, now};
  if (now.is_sending || questions_->awaited != now) questions_->changed = time;
  questions_->awaited = now;
  questions_->last = time;
  const Duration most = may_publish ? kLongestWait : context_.timings.others;
  return asked - questions_->changed < most;
}

}  // namespace spark::outputs
