#include "server/routes/openapi/openapi_schemas.h"

namespace tenon::server {
namespace {

constexpr NamedSchema kSchemas[] = {
    {"Number", R"json({"anyOf":[{"type":"number"},{"type":"boolean"},{"enum":["NaN","Infinity","-Infinity"]}]})json"},
    {"MaybeNumber", R"json({"anyOf":[{"$ref":"#/components/schemas/Number"},{"type":"null"}]})json"},
    {"Amount", R"json({"anyOf":[{"type":["number","null"]},{"enum":["NaN","Infinity","-Infinity"]}]})json"},
    {"Values",
     R"json({"anyOf":[{"$ref":"#/components/schemas/Number"},{"type":"array","items":{"$ref":"#/components/schemas/Values"}}]})json"},
    {"Shape", R"json({"anyOf":[{"type":"array","items":{"type":"integer","minimum":0},"maxItems":8},{"type":"string"}]})json"},
    {"DType",
     R"json({"type":"string","enum":["bool","uint8","uint16","uint32","uint64","int8","int16","int32","int64","float16","bfloat16","float32","float64","bfloat8_b","bfloat4_b"]})json"},
    {"Input", R"json({"type":"object","properties":{
"type":{"enum":["tensor","scalar",null]},"dtype":{"type":["string","null"]},"shape":{"anyOf":[{"$ref":"#/components/schemas/Shape"},{"type":"null"}]},
"value":{"anyOf":[{"$ref":"#/components/schemas/Values"},{"type":"null"}]},
"generator":{"enum":["constant","uniform","random","normal","range","linspace","eye",null]},
"seed":{"type":["integer","null"],"minimum":0,"maximum":9007199254740991},"low":{"$ref":"#/components/schemas/Amount"},"high":{"$ref":"#/components/schemas/Amount"},"mean":{"$ref":"#/components/schemas/Amount"},
"deviation":{"$ref":"#/components/schemas/Amount"},"start":{"$ref":"#/components/schemas/Amount"},"stop":{"$ref":"#/components/schemas/Amount"},"step":{"$ref":"#/components/schemas/Amount"},
"upload":{"type":["string","null"]},"tensor":{"type":["string","null"]},"expression":{"type":["string","null"]}},"additionalProperties":false})json"},
    {"ExecuteRequest", R"json({"type":"object","properties":{
"operation":{"type":"string"},"expression":{"type":"string","maxLength":65536},
"inputs":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/components/schemas/Input"}},{"type":"object","additionalProperties":{"$ref":"#/components/schemas/Input"}}]},
"parameters":{"type":["object","null"]},"optional_param":{},"optional_param_2":{},
"device":{"type":["string","null"],"minLength":1,"maxLength":10000},"mesh":{"type":["string","null"],"maxLength":1000},"shard":{"type":["object","null"],"additionalProperties":{"type":"string"}},"speeds":{"type":["array","string","null"],"items":{"type":"number","exclusiveMinimum":0}},"dtype":{"type":["string","null"]},"routing":{"enum":["prefer","fastest","cheapest","pinned",null]},"prefer":{"type":["string","null"],"maxLength":100},
"output":{"enum":["sample","full","npy","npz","safetensors","csv",null]},
"compare":{"type":["boolean","null"]},"details":{"type":["boolean","null"]},"keep":{"type":["boolean","null"]},
"repeat":{"type":["integer","null"],"minimum":1,"maximum":1000},"timeout_seconds":{"type":["number","null"],"minimum":0,"maximum":86400},
"priority":{"type":["integer","null"],"minimum":-10,"maximum":10}},
"oneOf":[{"required":["operation"]},{"required":["expression"]}],"additionalProperties":false,
"examples":[{"operation":"add","inputs":[{"value":1,"shape":[32,32]},{"value":2,"shape":[32,32]}]},
{"expression":"softmax(x)","inputs":{"x":{"value":[1,2,3]}}}]})json"},
    {"Span", R"json({"type":"object","required":["stage","start_seconds","seconds"],"properties":{
"stage":{"type":"string"},"start_seconds":{"type":"number"},"seconds":{"type":"number"}}})json"},
    {"Route", R"json({"type":"object","required":["requested","device","reason","warning","considered"],"properties":{
"requested":{"type":"string"},"device":{"type":"string"},"reason":{"type":"string"},"warning":{"type":["string","null"]},
"considered":{"type":"array","items":{"type":"object","required":["device","eligible","remark","queue_seconds",
"open_seconds","compile_seconds","transfer_seconds","compute_seconds","predicted_seconds","measured","dollars"],"properties":{
"device":{"type":"string"},"eligible":{"type":"boolean"},"remark":{"type":["string","null"]},
"queue_seconds":{"type":"number"},"open_seconds":{"type":"number"},"compile_seconds":{"type":"number"},
"transfer_seconds":{"type":"number"},"compute_seconds":{"type":"number"},"predicted_seconds":{"type":"number"},
"measured":{"type":"boolean"},"dollars":{"type":["number","null"]}}}}}})json"},
    {"Mesh", R"json({"type":"object","required":["axes","devices","collectives","bytes"],"properties":{
"axes":{"type":"string"},"devices":{"type":"array","items":{"type":"string"}},"bytes":{"type":"integer"},
"collectives":{"type":"array","items":{"type":"object","required":["kind","value","dtype","shape","from","to","axes","bytes"],"properties":{
"kind":{"enum":["all-reduce","reduce-scatter","all-gather","all-to-all","move"]},"value":{"type":"string"},"dtype":{"$ref":"#/components/schemas/DType"},
"shape":{"type":"array","items":{"type":"integer"}},"from":{"type":"string"},"to":{"type":"string"},"axes":{"type":"array","items":{"type":"string"}},"bytes":{"type":"integer"},"through":{"type":"string"}}}},
"timelines":{"type":"array","items":{"type":"array","items":{"$ref":"#/components/schemas/Span"}}},
"shardings":{"type":"array","items":{"type":"object","required":["node","sharding","text"],"properties":{
"node":{"type":"integer"},"sharding":{"type":"string"},"text":{"type":"string"}}}},
"outputs":{"type":"array","items":{"type":"string"}},"notes":{"type":"array","items":{"type":"string"}},"shares":{"type":"array","items":{"type":"number"}}}})json"},
    {"Progress", R"json({"type":"object","required":["stage","device","ahead_here","ahead_elsewhere","holder"],"properties":{
"stage":{"type":"string"},"device":{"type":["string","null"]},"ahead_here":{"type":"integer"},"ahead_elsewhere":{"type":"integer"},
"holder":{"type":["string","null"]}}})json"},
    {"BriefDevice", R"json({"type":"object","required":["id","kind","name","simulated"],"properties":{
"id":{"type":"string"},"kind":{"type":"string"},"name":{"type":"string"},"simulated":{"type":"boolean"},
"tier":{"type":"string","description":"of a device that computes in tiers: exact, fast, mixed"},
"tiers":{"type":"object","description":"the ops that ran in each tier","additionalProperties":{"type":"array","items":{"type":"string"}}},"architecture":{"type":["string","null"]},
"firmware_version":{"type":["string","null"]},"runtime":{"type":"string"},"simulator":{"type":"string"},
"stand_in":{"type":"string"}}})json"},
    {"Result",
     R"json({"type":"object","required":["name","shape","dtype","elements","bytes","value","sample_values","values","comparison"],"properties":{
"name":{"type":"string"},"shape":{"type":"array","items":{"type":"integer"}},"dtype":{"$ref":"#/components/schemas/DType"},
"elements":{"type":"integer"},"bytes":{"type":"integer"},"value":{"$ref":"#/components/schemas/MaybeNumber"},
"sample_values":{"type":"array","items":{"$ref":"#/components/schemas/Number"}},
"statistics":{"type":"object"},"histogram":{"type":["object","null"]},"grid":{"type":"object"},"comparison":{"type":["object","null"]}}})json"},
    {"ExecuteAnswer",
     R"json({"type":"object","required":["success","request_id","value","shape","dtype","ttnn_dtype","sample_values","torch_value","torch_dtype","torch_shape","full_output","status_log","device","route","timeline","seconds","download","results"],"properties":{
"success":{"const":true},"request_id":{"type":"string"},"operation":{"type":"string"},"expression":{"type":"string"},
"value":{"$ref":"#/components/schemas/MaybeNumber"},"shape":{"type":"array","items":{"type":"integer"}},
"dtype":{"$ref":"#/components/schemas/DType"},"sample_values":{"type":"array","items":{"$ref":"#/components/schemas/Number"}},
"status_log":{"type":"array","items":{"type":"string"}},"status_log_seconds":{"type":"array","items":{"type":"number"}},
"cost":{"type":["object","null"],"properties":{"dollars":{"type":"number"},"estimate":{"type":"boolean"}}},"device":{"$ref":"#/components/schemas/BriefDevice"},
"route":{"anyOf":[{"$ref":"#/components/schemas/Route"},{"type":"null"}]},
"timeline":{"type":"array","items":{"$ref":"#/components/schemas/Span"}},"seconds":{"type":"number"},
"mesh":{"$ref":"#/components/schemas/Mesh"},"download":{"type":["string","null"]},"inputs":{"type":"array"},"results":{"type":"array","items":{"$ref":"#/components/schemas/Result"}}}})json"},
    {"CheckAnswer",
     R"json({"type":"object","required":["success","free_names","missing","inputs","results","memory_bytes","route"],"properties":{
"mesh":{"$ref":"#/components/schemas/Mesh"},"route":{"anyOf":[{"$ref":"#/components/schemas/Route"},{"type":"null"}]}}})json"},
    {"Upload", R"json({"type":"object","required":["id","name","bytes","expires_in_seconds","tensors"],"properties":{
"id":{"type":"string"},"name":{"type":"string"},"bytes":{"type":"integer"},"expires_in_seconds":{"type":"number"},"tensors":{"type":"array"}}})json"},
    {"Job",
     R"json({"type":"object","required":["id","status","location","events","created","device","progress","status_log","seconds","result","problem"],"properties":{
"id":{"type":"string"},"status":{"enum":["queued","running","done","failed","cancelled"]},"location":{"type":"string"},
"progress":{"$ref":"#/components/schemas/Progress"},
"result":{"anyOf":[{"$ref":"#/components/schemas/ExecuteAnswer"},{"type":"null"}]},
"problem":{"anyOf":[{"$ref":"#/components/schemas/Problem"},{"type":"null"}]}}})json"},
    {"Problem",
     R"json({"type":"object","required":["type","title","status","detail","instance","code","request_id","success","error"],"properties":{
"type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},"detail":{"type":"string"},"instance":{"type":"string"},
"code":{"type":"string"},"hint":{"type":"string"},"request_id":{"type":"string"},"success":{"const":false},"error":{"type":"string"}}})json"},
    {"Catalogue", R"json({"type":"object","required":["version","operations","dtypes","generators","limits"]})json"},
    {"Device",
     R"json({"type":"object","required":["id","kind","name","simulated","vendor","architecture","backends","aliases","available",
"reason","remedy","exclusive","memory_total_bytes","memory_free_bytes","memory_is_nominal","pci_address","uuid","serial",
"numa_node","compute_capability","driver_version","runtime_version","firmware_version","supports_mixed_precision",
"supports_distributed","power_watts","power_limit_watts","temperature_celsius","cost_per_hour","cost_is_estimate","holders",
"runtimes","details","status"],"properties":{
"id":{"type":"string"},"kind":{"enum":["cpu","gpu","tpu","tenstorrent","other"]},"name":{"type":"string"},
"simulated":{"type":"boolean"},"vendor":{"type":["string","null"]},"architecture":{"type":["string","null"]},
"backends":{"type":"array","items":{"type":"string"}},"aliases":{"type":"array","items":{"type":"string"}},"same_as":{"type":["string","null"]},
"available":{"type":"boolean"},"reason":{"type":["string","null"]},"remedy":{"type":["string","null"]},
"exclusive":{"type":"boolean"},"memory_total_bytes":{"type":["integer","null"]},
"memory_free_bytes":{"type":["integer","null"]},"memory_is_nominal":{"type":"boolean"},
"pci_address":{"type":["string","null"]},"uuid":{"type":["string","null"]},"serial":{"type":["string","null"]},
"numa_node":{"type":["integer","null"]},"compute_capability":{"type":["string","null"]},
"driver_version":{"type":["string","null"]},"runtime_version":{"type":["string","null"]},
"firmware_version":{"type":["string","null"]},"supports_mixed_precision":{"type":"boolean"},
"supports_distributed":{"type":"boolean"},"power_watts":{"type":["number","null"]},
"power_limit_watts":{"type":["number","null"]},"temperature_celsius":{"type":["number","null"]},
"cost_per_hour":{"type":["number","null"]},"cost_is_estimate":{"type":"boolean"},
"holders":{"type":"array","items":{"type":"integer"}},
"runtimes":{"type":"array","items":{"type":"object","required":["backend","library"]}},
"details":{"type":"object","additionalProperties":{"type":"string"}},"status":{"type":["object","null"]}}})json"},
    {"Devices", R"json({"type":"object","required":["devices","default","notes","searched"],"properties":{
"devices":{"type":"array","items":{"$ref":"#/components/schemas/Device"}},"default":{"type":"string"},"notes":{"type":"array"},
"searched":{"type":"array","items":{"type":"object","required":["id","vendor","found","text","remedy"]}}}})json"},
    {"DeviceStatus",
     R"json({"type":"object","required":["available","mode","message","in_use","queue_stats","error","device"]})json"},
    {"DeviceQueue",
     R"json({"type":"object","required":["total_requests","currently_waiting","max_wait_time_seconds","devices"]})json"},
    {"Ledger", R"json({"type":"object","required":["enabled","totals","programs","days","entries"]})json"},
    {"Session",
     R"json({"type":"object","required":["required","authenticated","account","expires_in_seconds","idle_timeout_seconds","locked_for_seconds","remaining_attempts"]})json"},
    {"LoginRequest",
     R"json({"type":"object","required":["password"],"properties":{"password":{"type":"string","minLength":1,"maxLength":1024},"account":{"type":["string","null"],"maxLength":64}},"additionalProperties":false})json"},
    {"ResetRequest",
     R"json({"type":"object","required":["device"],"properties":{"device":{"type":"string","minLength":1},"confirm":{"type":["string","null"]}},"additionalProperties":false})json"},
    {"ResetAnswer", R"json({"type":"object","required":["success","message"]})json"},
    {"BugReport",
     R"json({"type":"object","required":["description"],"properties":{"description":{"type":"string","minLength":1,"maxLength":20000},"report_data":{}},"additionalProperties":false})json"},
    {"InferenceRequest",
     R"json({"type":"object","required":["inputs"],"properties":{"id":{"type":"string"},"parameters":{"type":"object"},
"inputs":{"type":"array","items":{"type":"object","required":["name","shape","datatype"]}},"outputs":{"type":"array","items":{"type":"object","required":["name"]}}}})json"},
    {"InferenceAnswer", R"json({"type":"object","required":["model_name","outputs"]})json"},
    {"Model", R"json({"type":"object","required":["name","versions","platform","inputs","outputs"]})json"},
};

}  // namespace

std::span<const NamedSchema> openapi_schemas() noexcept { return kSchemas; }

}  // namespace tenon::server
