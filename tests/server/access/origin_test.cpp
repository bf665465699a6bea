// Who may speak to a server without login, and whose address a request has.
#include "server/access/origin.h"

#include <gtest/gtest.h>

#include "server/http/problem.h"

namespace tenon::server {
namespace {

Request request_with(std::vector<Field> fields, Method method = Method::get, std::string_view path = "/api/devices") {
  Request request;
  request.method = method;
  request.path = path;
  request.fields = std::move(fields);
  return request;
}

bool answers_to(std::string_view host, std::vector<std::string> allowed = {}) {
  try {
    check_host(request_with({{"Host", host}}), allowed);
    return true;
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.status(), 403);
    return false;
  }
}

bool accepts(const Request& request, bool has_login = false) {
  try {
    check_origin(request, has_login);
    return true;
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.status(), 403);
    return false;
  }
}

TEST(Host, OnlyAddressesOfLoopbackAndLocalhostAreAnsweredTo) {
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "127.1.2.3:1", "[::1]", "[::1]:8080"})
    EXPECT_TRUE(answers_to(host)) << host;
  for (const char* host :
       {"127.evil.example", "127.evil.example:18001", "[::1]evil.example", "[::1]evil.example:80", "127.0.0.1.evil.example",
        "localhost.evil.example", "evil.example", "128.0.0.1", "::1", "[::2]", "[::1", "", "127.0.0.1:80:80", "127.0.0.1:x"})
    EXPECT_FALSE(answers_to(host)) << host;
}

TEST(Host, NamesGivenByTheOperatorAreAnsweredTo) {
  EXPECT_TRUE(answers_to("gpu.lab:8080", {"gpu.lab"}));
  EXPECT_FALSE(answers_to("", {""}));
}

TEST(Origin, AnotherSitesPageNeitherReadsNorWritesWithoutLogin) {
  for (const Method method : {Method::get, Method::head, Method::post, Method::delete_})
    for (const char* site : {"cross-site", "same-site"}) {
      EXPECT_FALSE(accepts(request_with({{"Host", "localhost"}, {"Sec-Fetch-Site", site}}, method))) << name(method);
      for (const char* path : {"/v1/models", "/v1/chat/completions", "/v2/models"})
        EXPECT_FALSE(accepts(request_with({{"Host", "localhost"}, {"Sec-Fetch-Site", site}}, method, path)))
            << name(method) << path;
    }
  EXPECT_FALSE(accepts(request_with({{"Host", "localhost"}, {"Origin", "http://evil.example"}}, Method::head, "/api/events")));
}

TEST(Origin, OurOwnPageAndOtherProgramsAreAccepted) {
  EXPECT_TRUE(accepts(request_with({{"Host", "localhost"}, {"Sec-Fetch-Site", "same-origin"}}, Method::post)));
  EXPECT_TRUE(accepts(request_with({{"Host", "localhost"}, {"Sec-Fetch-Site", "none"}})));
  EXPECT_TRUE(accepts(request_with({{"Host", "localhost:1"}, {"Origin", "http://localhost:1"}}, Method::post)));
  EXPECT_TRUE(accepts(request_with({{"Host", "localhost"}}, Method::post)));
  // A link on another site leads to the page itself.
  EXPECT_TRUE(accepts(request_with({{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}}, Method::get, "/")));
}

TEST(Origin, ALoginProtectsWhatOtherSitesRead) {
  EXPECT_TRUE(accepts(request_with({{"Host", "gpu.lab"}, {"Sec-Fetch-Site", "cross-site"}}), true));
  EXPECT_FALSE(accepts(request_with({{"Host", "gpu.lab"}, {"Sec-Fetch-Site", "cross-site"}}, Method::post), true));
}

TEST(ClientAddress, OnlyWhatTheTrustedProxyAppendedCounts) {
  const auto address = [](std::vector<Field> fields, const std::string& peer = "10.0.0.1") {
    return client_address(request_with(std::move(fields)), peer, "10.0.0.1");
  };
  EXPECT_EQ(address({{"X-Forwarded-For", "192.0.2.7"}}), "192.0.2.7");
  EXPECT_EQ(address({{"X-Forwarded-For", "1.2.3.4, 192.0.2.7"}}), "192.0.2.7");
  // A proxy that adds a line of its own after the client's.
  EXPECT_EQ(address({{"X-Forwarded-For", "1.2.3.4"}, {"x-forwarded-for", "192.0.2.7"}}), "192.0.2.7");
  EXPECT_EQ(address({{"X-Forwarded-For", "2001:db8::1"}}), "2001:db8::1");
  for (const char* claim : {"", "admin", "1.2.3.4 200", "192.0.2.7,"})
    EXPECT_EQ(address({{"X-Forwarded-For", claim}}), "10.0.0.1") << claim;
  EXPECT_EQ(address({{"X-Forwarded-For", "192.0.2.7"}}, "10.0.0.9"), "10.0.0.9") << "not from the proxy";
}

}  // namespace
}  // namespace tenon::server
