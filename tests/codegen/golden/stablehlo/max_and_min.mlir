// max(x, axis=0), min(n)
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4xi32>) -> (tensor<8xf32>, tensor<i32>) {
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = "stablehlo.reduce"(%arg0, %2) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.maximum %a, %b : tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = stablehlo.reshape %3 : (tensor<8xf32>) -> tensor<1x8xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x8xf32>) -> tensor<8xf32>
    %6 = stablehlo.constant dense<2147483647> : tensor<i32>
    %7 = "stablehlo.reduce"(%arg1, %6) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.minimum %a, %b : tensor<i32>
      "stablehlo.return"(%c) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.reshape %8 : (tensor<1xi32>) -> tensor<i32>
    "func.return"(%5, %9) : (tensor<8xf32>, tensor<i32>) -> ()
  }
}
