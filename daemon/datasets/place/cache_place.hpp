// The place of the whole cache: moved to another folder, or begun again after its drive was replaced.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/jobs.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

// The rest of the datasets' parts, as far as this needs it.
struct CacheInUse {
  std::function<json::object()> catalog_request;       // the first part of a worker's request
  std::function<std::set<std::string>()> busy;         // datasets being staged, waited for or evicted
  std::function<std::set<std::string>()> viewed;       // with live views that programs may have open
  std::function<asio::awaitable<Result<>>()> recover;  // the cache, once its place may be another one
  // Of all recoveries: false while one runs; none begins before the release.
  std::function<bool()> claim;
  std::function<void()> release;
  std::function<asio::awaitable<void>()> next_change;  // until a claim may succeed, or wake()
  std::function<void()> wake;
};

enum class ResetWish { Nothing, Forget, DeleteCopies };
// Of the copies that only the old folder has, when it is deleted.
enum class LastCopies { Brought, Discarded };

class CachePlace {
 public:
  CachePlace(asio::any_io_executor executor, workers::Runner& runner, Jobs& jobs, Leases& leases,
             CacheInUse cache)
      : executor_(std::move(executor)),
        runner_(runner),
        jobs_(jobs),
        leases_(leases),
        cache_(std::move(cache)) {}

  // Why nothing may be staged or evicted now: no two processes change the whole cache at the same time.
  Result<> check_no_reset() const;
  // Refused if the cache would get this path while its copies are on their way to another one.
  Result<> check_path(const std::string& path) const;

  // See staging/cache/place/relocation.hpp. Refused while anything is staged or evicted. While copies are
  // leased, the old ones are not deleted: the last call is refused then, and names the holders.
  Result<std::shared_ptr<Job>> move(std::string path, LastCopies last, Asker asker);
  // See staging/cache/place/reset.hpp. Refused, and the holders named, while anything is staged, evicted or
  // leased. Until it has ended, nothing is staged or evicted.
  Result<std::shared_ptr<Job>> reset(ResetWish wish, Asker asker);

 private:
  asio::awaitable<void> run(std::shared_ptr<Job> job, workers::Call call, workers::Cancellation cancellation);
  asio::awaitable<bool> claim(std::shared_ptr<Job> job, workers::Cancellation cancellation);
  Result<> check_idle(const std::string& doing) const;
  std::string holders() const;  // of leases that a process or a job holds; empty: none
  Result<std::shared_ptr<Job>> start(JobSubject subject, workers::Call call);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  Jobs& jobs_;
  Leases& leases_;
  CacheInUse cache_;
  std::weak_ptr<Job> last_;
};

}  // namespace spark::datasets
