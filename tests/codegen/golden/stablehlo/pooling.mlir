// max_pool2d(image, 2), avg_pool2d(image, 3, stride=1, padding=1)
module @tenon {
  func.func public @main(%arg0: tensor<1x2x5x5xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x5x5xf32>) {
    %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = "stablehlo.reduce_window"(%arg0, %1) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.maximum %a, %b : tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>} : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x2x2xf32>
    %3 = stablehlo.convert %arg0 : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf64>
    %4 = stablehlo.constant dense<0x0000000000000000> : tensor<f64>
    %5 = "stablehlo.reduce_window"(%3, %4) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %c = stablehlo.add %a, %b : tensor<f64>
      "stablehlo.return"(%c) : (tensor<f64>) -> ()
    }) {window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>} : (tensor<1x2x5x5xf64>, tensor<f64>) -> tensor<1x2x5x5xf64>
    %6 = stablehlo.convert %5 : (tensor<1x2x5x5xf64>) -> tensor<1x2x5x5xf32>
    %7 = stablehlo.constant dense<0x41100000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<1x2x5x5xf32>
    %9 = stablehlo.divide %6, %8 : tensor<1x2x5x5xf32>
    "func.return"(%2, %9) : (tensor<1x2x2x2xf32>, tensor<1x2x5x5xf32>) -> ()
  }
}
