// Answers shared by handlers of several subjects.
#pragma once

#include <string>
#include <utility>

#include "daemon/api/server.hpp"
#include "daemon/service/parts.hpp"

namespace spark {

inline api::Answer ok_answer(json::value body) {
  api::Answer answer;
  answer.body = std::move(body);
  return answer;
}

template <class Body>
api::Answer answer_with(Result<Body> body) {
  return body ? ok_answer(std::move(*body)) : api::error_answer(body.error());
}

// 202: the job has started; its result is available under /v1/jobs.
inline api::Answer accepted_answer(const Result<JobPtr>& job) {
  if (!job) return api::error_answer(job.error());
  api::Answer answer;
  answer.status = 202;
  answer.body = (*job)->to_json();
  return answer;
}

// 429: the user has used up its share.
inline api::Answer too_much_answer(const std::string& what, const std::string& hint) {
  api::Answer answer = api::error_answer({Errc::Unavailable, what, hint});
  answer.status = 429;
  return answer;
}

}  // namespace spark
