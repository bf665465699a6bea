// softmax(x)
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %1) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.maximum %a, %b : tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<4x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x8xf32>
    %6 = stablehlo.exponential %5 : tensor<4x8xf32>
    %7 = stablehlo.convert %6 : (tensor<4x8xf32>) -> tensor<4x8xf64>
    %8 = stablehlo.constant dense<0x0000000000000000> : tensor<f64>
    %9 = "stablehlo.reduce"(%7, %8) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %c = stablehlo.add %a, %b : tensor<f64>
      "stablehlo.return"(%c) : (tensor<f64>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x8xf64>, tensor<f64>) -> tensor<4xf64>
    %10 = stablehlo.convert %9 : (tensor<4xf64>) -> tensor<4xf32>
    %11 = stablehlo.reshape %10 : (tensor<4xf32>) -> tensor<4x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %13 = stablehlo.divide %6, %12 : tensor<4x8xf32>
    "func.return"(%13) : (tensor<4x8xf32>) -> ()
  }
}
