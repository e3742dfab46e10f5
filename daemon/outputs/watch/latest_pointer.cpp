#include "daemon/outputs/watch/latest_pointer.hpp"

#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
namespace {

constexpr Duration kPauseOfPointer{60'000};

}  // namespace

asio::awaitable<void> LatestPointer::correct(const std::vector<PublishedCheckpoint>& published,
                                             const std::string& now, uid_t owner) {
  const bool is_right = published.empty() || now == published.front().name;
  const auto place = context_.find_volume(output_.volume);
  if (is_right || !place || context_.clock.steady() < next_) co_return;
  next_ = context_.clock.steady() + kPauseOfPointer;
  workers::Call call;
  call.verb = "point-output";
  call.subject = "volume " + printable(output_.volume);
  call.deadline = context_.timings.list;
  call.request = {{"path", output_.to}, {"uid", owner}, {"rule", rule_of(output_)}};
  place->add_to(call.request);
  const auto pointed = co_await context_.runner.run(std::move(call));
  const bool is_jobs_own = !pointed && pointed.error().kind == Errc::Refused;
  if (!pointed && !is_jobs_own) log::survived(pointed.error());
}

}  // namespace spark::outputs
