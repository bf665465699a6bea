// /login, /logout, /api/session.
#include <fmt/format.h>

#include "base/text/json_writer.h"
#include "server/access/accounts.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "server/services.h"

namespace tenon::server {
namespace {

// Whoever reaches the server may send one, so it must not be worth sending much.
constexpr std::size_t kMaxLoginBytes = 4096;

struct Credentials {
  std::string account = "admin", password;
  bool is_form = false;
};

Credentials read_credentials(const Request& request) {
  Credentials credentials;
  credentials.is_form = request.field("Content-Type").starts_with("application/x-www-form-urlencoded");
  if (credentials.is_form) {
    Request form;
    form.query = request.text();
    credentials.account = form.parameter("account").value_or("admin");
    credentials.password = form.parameter("password").value_or("");
  } else {
    const boost::json::object document = parse_object(request.text());
    Members members(document, "");
    credentials.account = members.text("account").value_or("admin");
    credentials.password = members.text("password").value_or("");
    members.done();
  }
  if (credentials.account.empty()) credentials.account = "admin";
  if (credentials.password.empty()) throw Problem(400, "invalid_argument", "'password' is required");
  return credentials;
}

std::string cookie_field(std::string_view name, std::string_view value, long long seconds, bool is_secure) {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", name, value, seconds, is_secure ? "; Secure" : "");
}

bool is_secure(const Services& services, const Call& call) {
  return !services.options.trusted_proxy.empty() && call.request.field("X-Forwarded-Proto") == "https";
}

Response redirect_home() {
  Response response;
  response.status = 303;
  response.content_type.clear();
  response.fields.emplace_back("Location", "/");
  return response;
}

Response login(Services& services, const Call& call) {
  const Credentials credentials = read_credentials(call.request);
  if (!services.accounts.is_required())
    throw Error(ErrorCode::failed_precondition, "this server has no login", "it is reachable only from this machine");
  const Accounts::Login login =
      services.accounts.login(credentials.account, credentials.password, call.client.address, call.request);
  Response response;
  if (credentials.is_form) response = redirect_home();
  const bool secure = is_secure(services, call);
  response.fields.emplace_back(
      "Set-Cookie", cookie_field(Accounts::kSessionCookie, login.session, services.options.session_total.count(), secure));
  response.fields.emplace_back("Set-Cookie", cookie_field(Accounts::kClientCookie, login.client, 365LL * 24 * 3600, secure));
  if (credentials.is_form) return response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("success", true);
  json.member("account", login.account);
  json.member("idle_timeout_seconds", services.accounts.idle().count());
  json.member("expires_in_seconds", services.accounts.idle().count());
  json.end_object();
  return response;
}

Response logout(Services& services, const Call& call) {
  services.accounts.logout(call.request);
  Response response;
  if (call.request.method == Method::post)
    response.body = R"({"success":true})";
  else
    response = redirect_home();
  response.fields.emplace_back("Set-Cookie", cookie_field(Accounts::kSessionCookie, "", 0, is_secure(services, call)));
  return response;
}

Response session(Services& services, const Call& call) {
  Response response;
  JsonWriter json(response.body);
  const std::string account = call.request.parameter("account").value_or("admin");
  json.begin_object();
  json.member("required", services.accounts.is_required());
  const Accounts::Standing standing = services.accounts.standing(call.request, account.substr(0, 64), call.client.address);
  json.member("authenticated", !services.accounts.is_required() || standing.account.has_value());
  json.member("account", standing.account);
  json.member("expires_in_seconds", standing.expires_in_seconds);
  json.member("idle_timeout_seconds", services.accounts.idle().count());
  json.member("locked_for_seconds", standing.locked_for_seconds);
  json.member("remaining_attempts", standing.remaining_attempts);
  json.end_object();
  return response;
}

}  // namespace

void add_session_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::post,
              .path = "/login",
              .tag = "session",
              .summary = "Log in with a password",
              .runs = Runs::in_worker,
              .access = Access::open,
              .body = BodyKind::form_or_json,
              .max_body_bytes = kMaxLoginBytes,
              .request_schema = "LoginRequest",
              .response_schema = R"({"type":"object","required":["success","account"]})",
              .failures = {303, 401, 409},
              .handler = [&services](const Call& call) { return login(services, call); }});
  routes.add({.method = Method::get,
              .path = "/login",
              .tag = "session",
              .summary = "The page",
              .access = Access::open,
              .media = "text/html",
              .failures = {404},
              .renews_session = false,
              .handler = [](const Call& call) {
                std::optional<Response> page = page_response(call.request);
                if (!page) throw Error(ErrorCode::not_found, "the server was built without its page");
                return std::move(*page);
              }});
  for (const Method method : {Method::get, Method::post})
    routes.add({.method = method,
                .path = "/logout",
                .tag = "session",
                .summary = "End the session",
                .access = Access::open,
                .response_schema = R"({"type":"object","required":["success"]})",
                .success = method == Method::get ? 303 : 200,
                .handler = [&services](const Call& call) { return logout(services, call); }});
  for (const Method method : {Method::get, Method::post})
    routes.add({.method = method,
                .path = "/api/session",
                .tag = "session",
                .summary = method == Method::get ? "Show whether a login is required and the state of this client's session"
                                                 : "Keep the session alive",
                .access = Access::open,
                .response_schema = "Session",
                .parameters = {"account: string"},
                .renews_session = method == Method::post,
                .handler = [&services](const Call& call) { return session(services, call); }});
}

}  // namespace tenon::server
