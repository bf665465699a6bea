// /v1/embeddings and /v1/models as OpenAI's clients use them; /similarity and /tokenize as in text-embeddings-inference.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/text/json_writer.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/routes/text/embedding.h"
#include "server/services.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

std::string base64(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63];
  }
  return out;
}

struct Document {
  MemoryGate::Share memory;  // of the parsed text
  json::object object;
};
Document document_of(Services& services, const Call& call) {
  Document document;
  document.memory = services.reader(call).parsing(call.request.text().size());
  document.object = parse_object(call.request.text());
  return document;
}

// A text or a list of texts. Token ids, which some clients send instead, are those of another model's tokenizer.
std::vector<std::string> texts_of(const json::value* value, std::string_view name) {
  const auto fail = [&](const std::string& what, const char* hint) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' {}", name, what), hint);
  };
  constexpr const char* kForm = "send a text or a list of texts";
  if (value == nullptr) fail("is required", kForm);
  if (value->is_string()) return {std::string(value->get_string())};
  if (!value->is_array()) fail("must be a text or a list of texts", kForm);
  const json::array& list = value->get_array();
  if (list.empty()) fail("is empty", kForm);
  if (list.size() > kMaxTexts)
    fail(fmt::format("has {} texts; at most {} are allowed", list.size(), kMaxTexts), "send several requests");
  std::vector<std::string> texts;
  for (const json::value& each : list) {
    if (each.is_number() || each.is_array())
      fail("has token ids, which belong to the client's tokenizer and not to this model's",
           "send texts; with langchain: OpenAIEmbeddings(check_embedding_ctx_length=False)");
    if (!each.is_string()) fail("must contain texts only", kForm);
    texts.emplace_back(each.get_string());
  }
  return texts;
}

// --- /v1/embeddings ---

struct VectorForm {
  bool is_base64 = false;
  std::int64_t dimensions = 0;  // 0: all
};

// The first |dimensions|, of length 1 again.
HostArray shortened(const HostArray& vector, std::int64_t dimensions) {
  if (dimensions == 0 || dimensions == vector.elements()) return vector;
  HostArray out =
      HostArray::from_bytes(DType::f32, {dimensions}, {vector.data(), static_cast<std::size_t>(dimensions) * sizeof(float)});
  double sum = 0;
  for (const float each : out.view<float>()) sum += static_cast<double>(each) * static_cast<double>(each);
  const auto scale = static_cast<float>(sum > 0 ? 1 / std::sqrt(sum) : 1);
  for (float& each : out.mutable_view<float>()) each *= scale;
  return out;
}

Response embeddings_response(const Embedded& embedded, const std::string& model, const VectorForm& form) {
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("object", "list");
  out.key("data").begin_array();
  for (std::size_t i = 0; i < embedded.vectors.size(); ++i) {
    const HostArray& whole = embedded.vectors[i];
    if (form.dimensions > whole.elements())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'dimensions' is {}; vectors of model {} have {}", form.dimensions, model, whole.elements()));
    const HostArray vector = shortened(whole, form.dimensions);
    out.begin_object();
    out.member("object", "embedding");
    out.member("index", i);
    if (form.is_base64)
      out.member("embedding", base64({vector.data(), vector.bytes()}));
    else
      out.list("embedding", vector.view<float>());
    out.end_object();
  }
  out.end_array();
  out.member("model", model);
  out.key("usage").begin_object();
  out.member("prompt_tokens", embedded.tokens);
  out.member("total_tokens", embedded.tokens);
  out.end_object();
  out.end_object();
  return response;
}

void begin_embeddings(Services& services, const Call& call, const Finish& finish) {
  const Document document = document_of(services, call);
  Members request(document.object, "");
  const std::string format = request.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    request.fail(fmt::format("'encoding_format' must be float or base64, not '{}'", format.substr(0, 32)));
  VectorForm form{.is_base64 = format == "base64", .dimensions = request.integer("dimensions", 1, 1 << 20).value_or(0)};
  std::vector<std::string> texts = texts_of(request.find("input"), "input");
  EmbeddingRequest embedding = begin_embedding(services, call, request.text("model").value_or(""));
  embedding.texts = std::move(texts);
  embedding.truncates = request.boolean("truncate").value_or(false);
  const std::string model = embedding.model->name();
  embed(services, call, std::move(embedding), [finish, model, form](const Embedded& embedded) {
    finish([&] {
      if (embedded.error) rethrow_from_run(embedded.error);
      return embeddings_response(embedded, model, form);
    });
  });
}

// --- /similarity ---

double cosine(const HostArray& a, const HostArray& b) {
  double dot = 0, aa = 0, bb = 0;
  const std::span<const float> x = a.view<float>(), y = b.view<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    dot += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    aa += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    bb += static_cast<double>(y[i]) * static_cast<double>(y[i]);
  }
  return aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
}

void begin_similarity(Services& services, const Call& call, const Finish& finish) {
  const Document document = document_of(services, call);
  const json::value* nested = document.object.if_contains("inputs");
  if (nested != nullptr && !nested->is_object())
    throw Error(ErrorCode::invalid_argument, "'inputs' must be an object",
                R"(send {"inputs": {"source_sentence": "...", "sentences": ["..."]}})");
  Members request(nested != nullptr ? nested->get_object() : document.object, "");
  Members outer(document.object, "");
  const std::optional<std::string> source = request.text("source_sentence");
  if (!source) request.fail("'source_sentence' is required", R"(send {"source_sentence": "...", "sentences": ["..."]})");
  std::vector<std::string> texts = texts_of(request.find("sentences"), "sentences");
  texts.insert(texts.begin(), *source);
  EmbeddingRequest embedding = begin_embedding(services, call, outer.text("model").value_or(""));
  embedding.texts = std::move(texts);
  embedding.truncates = outer.boolean("truncate").value_or(false);
  embed(services, call, std::move(embedding), [finish](const Embedded& embedded) {
    finish([&] {
      if (embedded.error) rethrow_from_run(embedded.error);
      Response response;
      JsonWriter out(response.body);
      out.begin_array();
      for (std::size_t i = 1; i < embedded.vectors.size(); ++i)
        out.value(static_cast<float>(cosine(embedded.vectors[0], embedded.vectors[i])));
      out.end_array();
      return response;
    });
  });
}

// --- /tokenize ---

void write_tokens(JsonWriter& out, const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  out.begin_array();
  for (const std::int32_t id : ids) {
    const std::string text = tokenizer.token_of(id).value_or("");
    out.begin_object();
    out.member("id", id);
    out.member("text", text);
    // A special token is one that decoding leaves out.
    out.member("special", tokenizer.decode(std::span(&id, 1)).empty() && !tokenizer.decode(std::span(&id, 1), false).empty());
    out.end_object();
  }
  out.end_array();
}

Response tokenize(Services& services, const Call& call) {
  const Document document = document_of(services, call);
  Members request(document.object, "");
  const std::vector<std::string> texts = texts_of(request.find("inputs"), "inputs");
  const bool special = request.boolean("add_special_tokens").value_or(true);
  const EmbeddingRequest embedding = begin_embedding(services, call, request.text("model").value_or(""));
  request.done();
  const Tokenizer& tokenizer = embedding.loaded->encoder->tokenizer();
  std::uint64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size() * 64 + 64;
  const MemoryGate::Share memory = services.memory_of(call).take(bytes);
  Response response;
  JsonWriter out(response.body);
  out.begin_array();
  for (const std::string& text : texts) write_tokens(out, tokenizer, tokenizer.encode(text, special).ids);
  out.end_array();
  return response;
}

// --- /v1/models ---

void write_model(JsonWriter& out, const std::string& name) {
  out.begin_object();
  out.member("id", name);
  out.member("object", "model");
  out.member("created", 0);
  out.member("owned_by", "tenon");
  out.end_object();
}

Response list_models(Services& services) {
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("object", "list");
  out.key("data").begin_array();
  std::string before;
  for (const std::shared_ptr<ServedModel>& model : services.models.all())
    if (model->is_servable() && std::exchange(before, model->name()) != model->name()) write_model(out, model->name());
  out.end_array();
  out.end_object();
  return response;
}

Response show_model(Services& services, const Call& call) {
  Response response;
  JsonWriter out(response.body);
  write_model(out, services.models.find(call.arguments[0])->name());
  return response;
}

}  // namespace

void add_text_routes(RouteTable& routes, Services& services) {
  const auto post = [&](const char* path, const char* summary, const char* schema, const char* answer, LongHandler begin) {
    routes.add({.method = Method::post,
                .path = path,
                .tag = "text",
                .summary = summary,
                .runs = Runs::computing,
                .body = BodyKind::json,
                .request_schema = schema,
                .response_schema = answer,
                .failures = {404, 409, 413, 501, 504},
                .begin = std::move(begin)});
  };
  post(
      "/v1/embeddings", "Turn texts into vectors (OpenAI)",
      R"({"type":"object","required":["input"],"properties":{"model":{"type":"string"},"input":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2048}]},"encoding_format":{"enum":["float","base64"]},"dimensions":{"type":"integer","minimum":1,"maximum":1048576},"truncate":{"type":"boolean"},"user":{"type":"string"}}})",
      R"({"type":"object","required":["object","data","model","usage"]})",
      [&services](const Call& call, const Finish& finish) { begin_embeddings(services, call, finish); });
  post(
      "/similarity", "Compare a sentence with others by the cosine of their vectors",
      R"({"type":"object","properties":{"model":{"type":"string"},"truncate":{"type":"boolean"},"source_sentence":{"type":"string"},"sentences":{"type":"array","items":{"type":"string"}},"inputs":{"type":"object"}}})",
      R"({"type":"array","items":{"type":"number"}})",
      [&services](const Call& call, const Finish& finish) { begin_similarity(services, call, finish); });
  post(
      "/tokenize", "Turn texts into the tokens of a model",
      R"({"type":"object","required":["inputs"],"properties":{"model":{"type":"string"},"inputs":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2048}]},"add_special_tokens":{"type":"boolean"}}})",
      R"({"type":"array","items":{"type":"array"}})",
      [&services](const Call& call, const Finish& finish) { finish([&] { return tokenize(services, call); }); });
  const auto get = [&](const char* path, const char* summary, std::vector<int> failures, Handler handler) {
    routes.add({.method = Method::get,
                .path = path,
                .tag = "text",
                .summary = summary,
                .response_schema = R"({"type":"object","required":["object"]})",
                .failures = std::move(failures),
                .handler = std::move(handler)});
  };
  get("/v1/models", "List the models of the folder (OpenAI)", {}, [&services](const Call&) { return list_models(services); });
  get("/v1/models/{name}", "Show one model of the folder (OpenAI)", {404},
      [&services](const Call& call) { return show_model(services, call); });
}

}  // namespace tenon::server
