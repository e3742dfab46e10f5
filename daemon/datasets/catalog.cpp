#include "daemon/datasets/catalog.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

constexpr std::chrono::seconds kCatalogDeadline{60};
constexpr Duration kPatience{2000};                 // of a request, with a drive that does not answer
constexpr std::chrono::hours kRecoveryDeadline{1};  // recovery may delete millions of files

}  // namespace

json::object Catalog::request() const {
  return {{"cache", workers::to_json(context_.config().cache, context_.state_dir)},
          {"knows_catalog", is_looked_over_}};
}

bool Catalog::claim() {
  if (is_claimed_ || recoveries_ > 0 || is_being_opened()) return false;
  is_claimed_ = true;
  return true;
}

void Catalog::release() {
  is_claimed_ = false;
  changed_.notify();
}

asio::awaitable<Result<>> Catalog::recover() {
  while (is_claimed_) co_await changed_.wait();
  ++recoveries_;
  workers::Call call{"recover", "the cache", request(), kRecoveryDeadline};
  call.on_progress = [this](const json::object& /*looked_over*/) {
    launch(context_.executor, "list of the cache", look_over());
  };
  const auto recovered = co_await context_.runner.run(std::move(call));
  --recoveries_;
  changed_.notify();
  if (!recovered) co_return fail(recovered.error());
  co_await look_over();
  co_return *answer_ ? Result<>() : fail(answer_->error());
}

// The catalog now matches the disk, so it can be shown as soon as it can be read.
asio::awaitable<void> Catalog::look_over() {
  co_await refresh();
  is_looked_over_ = true;
  changed_.notify();
}

void Catalog::could_not_open(const Error& why) {
  if (!is_looked_over_) answer_ = fail(why);
  changed_.notify();
}

asio::awaitable<void> Catalog::refresh() {
  json::array in_progress;
  for (const auto& [name, task] : activity_.tasks) {
    if (!task->is_over) in_progress.emplace_back(task->number);
  }
  workers::Call call{"catalog", "the cache", request()};
  call.request["in_progress"] = std::move(in_progress);
  call.request["newest"] = activity_.newest_task;
  call.deadline = kCatalogDeadline;
  const std::uint64_t turn = ++asked_;
  auto answer = co_await context_.runner.run(std::move(call));
  if (turn < answered_) co_return;  // a later request was answered first: this answer is outdated
  answered_ = turn;
  answered_at_ = context_.clock.steady();
  answer_ = std::move(answer);
  changed_.notify();
  tell_writable();
}

asio::awaitable<void> Catalog::look_again() {
  if (!is_looked_over_ || !answer_) co_return;
  const bool is_old = context_.clock.steady() - answered_at_ > context_.timings.old;
  if (*answer_ && !is_old) co_return;
  if (!std::exchange(is_looking_, true)) launch(context_.executor, "another look at the cache", look());
  const auto patience = std::make_shared<Timer>(context_.executor);
  waiting_.push_back(patience);
  patience->expires_after(kPatience);
  co_await patience->wait();
  std::erase(waiting_, patience);
}

asio::awaitable<void> Catalog::look() {
  co_await refresh();
  is_looking_ = false;
  for (const auto& patience : waiting_) patience->cancel();
}

// Logs each reason once.
void Catalog::tell_writable() {
  const json::object* usage = *answer_ ? get_object(**answer_, "usage") : nullptr;
  const std::string why = usage == nullptr ? "" : get_text(*usage, "writable_because");
  if (why != writable_because_ && !why.empty()) log::warning("jobs can change the staged copies: " + why);
  if (usage != nullptr) writable_because_ = why;
}

Result<const json::object*> Catalog::known() const {
  if (answer_ && !*answer_) return fail(answer_->error());
  if (!is_looked_over_)
    return fail(Errc::Unavailable, "the cache is still being opened", "try again in a moment");
  return &**answer_;
}

Result<std::vector<std::string>> Catalog::names() const {
  const auto catalog = known();
  if (!catalog) return catalog.take_error();
  std::vector<std::string> names;
  for (const json::object& row : objects_in(**catalog, "datasets")) names.push_back(get_text(row, "name"));
  return names;
}

std::vector<json::object> Catalog::generations_of(const std::string& dataset) const {
  std::vector<json::object> copies;
  const auto catalog = known();
  if (!catalog) return copies;
  for (const json::object& row : objects_in(**catalog, "datasets")) {
    if (get_string(row, "name") != dataset) continue;
    copies.push_back(row);
    for (const json::object& one : objects_in(row, "older")) copies.push_back(one);
  }
  return copies;
}

Result<> Catalog::check_listed(const std::string& dataset) const {
  const auto all = names();
  if (!all) return all.take_error();
  if (std::ranges::find(*all, dataset) != all->end()) return {};
  const std::string near = nearest(dataset, *all);
  return fail(Errc::NotFound, "dataset " + printable(dataset) + " is not staged",
              near.empty() ? "`spark-stage ls` lists the staged datasets"
                           : "did you mean '" + printable(near) + "'?");
}

}  // namespace spark::datasets
